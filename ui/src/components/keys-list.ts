/** A line of the list of shortcuts: the keys, their description, and their commands in the palette. */
export type KeyLine = [keys: string, description: string, commands?: [name: string, command: string][]];

/** All shortcuts. The palette offers the commands whose key has a handler on the current page. */
export const keyGroups: [title: string, lines: KeyLine[]][] = [
  [
    "Playback",
    [
      ["Space", "play, pause", [[" ", "Play or pause"]]],
      ["← →", "5 seconds back, forward"],
      ["Shift ← →", "10% back, forward"],
      [
        ", .",
        "previous, next step",
        [
          [",", "Previous step"],
          [".", "Next step"],
        ],
      ],
      ["Alt , .", "previous, next event"],
      [
        "[ ]",
        "previous, next marker; in a comparison, difference",
        [
          ["[", "Previous marker"],
          ["]", "Next marker"],
        ],
      ],
      [
        "t T",
        "next, previous tool call",
        [
          ["t", "Next tool call"],
          ["T", "Previous tool call"],
        ],
      ],
      [
        "e E",
        "next, previous error",
        [
          ["e", "Next error"],
          ["E", "Previous error"],
        ],
      ],
      [
        "u U",
        "next, previous user message",
        [
          ["u", "Next user message"],
          ["U", "Previous user message"],
        ],
      ],
      ["0–9", "go to 0% to 90%"],
      [
        "Home End",
        "go to the start, the end",
        [
          ["Home", "Go to start"],
          ["End", "Go to end"],
        ],
      ],
      ["L", "go live", [["L", "Go live"]]],
      [
        "< > =",
        "slower, faster, 1×",
        [
          ["<", "Slower"],
          [">", "Faster"],
          ["=", "Speed 1×"],
        ],
      ],
      ["i", "turn skipping of idle times on or off", [["i", "Toggle skipping of idle times"]]],
      ["a", "turn short idle times on the bar on or off", [["a", "Toggle short idle times on the bar"]]],
    ],
  ],
  [
    "Session",
    [
      ["n", "start a new session", [["n", "New session"]]],
      ["j k", "select the next, the previous item"],
      ["Enter", "open it"],
      ["o", "show its events", [["o", "Show the events of the selected item"]]],
      ["y", "copy a link to this moment", [["y", "Copy a link to this moment"]]],
      ["S", "share the session", [["S", "Share the session"]]],
      ["r", "rewind to the selected item", [["r", "Rewind to the selected item"]]],
      ["b", "fork at the selected item", [["b", "Fork here"]]],
      [
        "A",
        "run the selected turn again with another agent, in a fork",
        [["A", "Run again from here with another agent"]],
      ],
      ["R", "resume the run", [["R", "Resume the run"]]],
      ["q", "go to the next question that waits", [["q", "Next question that waits"]]],
      ["1 2", "answer the question that has the focus"],
      ["m", "set a bookmark", [["m", "Set a bookmark"]]],
      ["w", "write to the agent", [["w", "Write to the agent"]]],
      ["p", "show or hide the panel", [["p", "Show or hide the panel"]]],
      ["x", "expand all, none, or failed tools and edits", [["x", "Expand or collapse all tools"]]],
      ["d", "compact or roomy rows", [["d", "Compact or roomy rows"]]],
      ["z", "show only the conversation, or the whole page", [["z", "Show only the conversation, or the whole page"]]],
      ["Esc", "leave a field or a search, clear the selection"],
    ],
  ],
  [
    "Navigation",
    [
      ["g c", "conversation", [["g c", "Conversation"]]],
      ["g l", "timing: how long what took", [["g l", "Timing"]]],
      ["g e", "events", [["g e", "Events"]]],
      ["g t", "terminal", [["g t", "Terminal"]]],
      ["g b", "branches", [["g b", "Branches"]]],
      ["g w", "workflow of the session", [["g w", "Workflow of this session"]]],
      ["g f", "workflows", [["g f", "Workflows: start one"]]],
      ["g u", "usage", [["g u", "Usage"]]],
      ["g s", "sessions", [["g s", "Sessions"]]],
      ["g i", "inbox", [["g i", "Inbox"]]],
      ["j k Enter", "in the list: next, previous, open"],
      ["x c", "in the list: mark, compare marked sessions"],
      ["+ - 0", "in the time view: zoom in, zoom out, fit"],
      ["b c", "in the branches graph: fork, compare"],
      ["/ Ctrl F", "find in the session, or search", [["/", "Find"]]],
      ["F3, with Shift", "next, previous result"],
      ["Ctrl G", "go to a turn, an offset, a time", [["Ctrl+g", "Go to a turn, an offset, a time"]]],
      ["Ctrl K", "open the command palette"],
      ["?", "show this list", [["?", "Show keyboard shortcuts"]]],
    ],
  ],
];
