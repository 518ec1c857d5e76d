"""The tests of the client. One that hangs ends all of them after five minutes, and says where."""

import faulthandler

faulthandler.dump_traceback_later(300, exit=True)
