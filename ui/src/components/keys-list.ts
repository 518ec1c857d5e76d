/** A line of the list of keys: how they are written, what they do, and their names for the palette. */
export type KeyLine = [keys: string, what: string, does?: [name: string, command: string][]];

/** All keys there are. The palette offers those commands whose key does something on the page. */
export const keyGroups: [title: string, lines: KeyLine[]][] = [
  [
    "Playback",
    [
      ["Space", "play, pause", [[" ", "Play or pause"]]],
      ["← →", "5 seconds back, forward"],
      ["Shift ← →", "a tenth of it back, forward"],
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
        "previous, next marker",
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
        "next, previous message of a user",
        [
          ["u", "Next message of a user"],
          ["U", "Previous message of a user"],
        ],
      ],
      ["0–9", "to so many tenths"],
      [
        "Home End",
        "to the start, the end",
        [
          ["Home", "To the start"],
          ["End", "To the end"],
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
      ["i", "skip idle times, or not", [["i", "Skip idle times, or not"]]],
      ["a", "shorten idle times on the bar, or not", [["a", "Shorten idle times on the bar, or not"]]],
    ],
  ],
  [
    "Session",
    [
      ["j k", "select the next, the previous item"],
      ["Enter", "open it"],
      ["o", "show its events", [["o", "Show the events of the selected item"]]],
      ["y", "copy a link to this moment", [["y", "Copy a link to this moment"]]],
      ["r", "rewind to the selected item", [["r", "Rewind to the selected item"]]],
      ["b", "fork at the selected item", [["b", "Fork here"]]],
      ["R", "resume the run", [["R", "Resume the run"]]],
      ["m", "set a bookmark", [["m", "Set a bookmark"]]],
      ["w", "write to the agent", [["w", "Write to the agent"]]],
      ["p", "show or hide the panel", [["p", "Show or hide the panel"]]],
      ["z", "only the conversation, or all of the page", [["z", "Only the conversation, or all of the page"]]],
      ["Esc", "leave a field or a search, let go of the selection"],
    ],
  ],
  [
    "Going places",
    [
      ["g c", "conversation", [["g c", "Conversation"]]],
      ["g e", "events", [["g e", "Events"]]],
      ["g t", "terminal", [["g t", "Terminal"]]],
      ["g b", "branches", [["g b", "Branches"]]],
      ["g s", "sessions", [["g s", "Sessions"]]],
      ["j k Enter", "in the list: next, previous, open"],
      ["x c", "in the list: mark, compare the marked"],
      ["+ - 0", "in time: closer, wider, all"],
      ["b c", "in the graph of branches: fork, compare"],
      ["/ Ctrl F", "find in the session, or search", [["/", "Find"]]],
      ["F3, with Shift", "next, previous of what was found"],
      ["Ctrl G", "go to a turn, an offset, a time", [["Ctrl+g", "Go to a turn, an offset, a time"]]],
      ["Ctrl K", "sessions and commands by name"],
      ["?", "this list", [["?", "Show the keys"]]],
    ],
  ],
];
