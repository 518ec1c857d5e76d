"""An agent loop of your own. What it does is in the log, and a stop on any screen ends it.

    python3 agent.py "How warm is it in Bern?" [SESSION]
"""

import os
import sys

import model
import tapedeck

URL = os.environ.get("TAPEDECK_URL", "http://127.0.0.1:4747")
TOOLS = {"temperature": lambda city: {"city": city, "celsius": 21}}


def answer(session: tapedeck.Session, task: str) -> None:
    with session.run(task, agent="weather", on_cancel=model.close) as run:
        calls = True
        while calls:
            calls = []
            run.next_turn()
            run.flush()  # the log is the memory of the agent
            for piece in model.reply(session.context()["messages"]):
                if isinstance(piece, model.Call):
                    calls.append(piece)
                else:
                    run.text(piece)
            for call in calls:
                with run.tool(call.name, call.arguments) as recorded:
                    recorded.result(TOOLS[call.name](**call.arguments))


def main(task: str, id: str | None = None) -> None:
    client = tapedeck.Client(URL)
    session = client.session(id) if id else client.create(title=task)
    print(f"{URL}/s/{session.id}", flush=True)
    answer(session, task)
    print(session.snapshot()["messages"][-1]["text"])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except tapedeck.TapedeckError as error:  # also a stop on a screen
        sys.exit(str(error))
