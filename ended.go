package tapedeck

// CodeRunEnded is the code of the SUBAGENT_ERROR that ends a subagent whose run
// ends before it.
const CodeRunEnded = "run_ended"
