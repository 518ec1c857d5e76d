"""Tapedeck from Python: durable sessions of AI agents.

:class:`Client` and :class:`Session` call a server and wait; ``tapedeck.aio`` has the same for
asyncio. :class:`Run` records a run of an agent in this program. ``tapedeck.asgi`` records the
streams of an ASGI application.
"""

from .client import Client
from .errors import Cancelled, TapedeckError
from .follow import Follower
from .producer import Producer
from .run import Run
from .session import Session
from .tool import ToolCall
from .types import Event
from .workflow import Workflows

__all__ = ["Cancelled", "Client", "Event", "Follower", "Producer", "Run", "Session", "TapedeckError", "ToolCall", "Workflows"]
