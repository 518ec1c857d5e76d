package task

import "encoding/json"

// These types are the data of the protocol's events. A member that is not known is
// null; no member is left out.

type startData struct {
	Session string   `json:"session_id"`
	Model   *string  `json:"model"`
	Tools   []string `json:"tools"`
	Skills  []string `json:"skills"`
	Task    string   `json:"task"`
}

type textData struct {
	Text string `json:"text"`
}

type messageData struct {
	Text    any     `json:"text"` // a string; of a partial message a [payload.Piece]
	Partial bool    `json:"is_partial"`
	Full    *string `json:"full_text,omitempty"` // of a finished message
}

func finalMessage(text string) messageData {
	return messageData{Text: text, Full: &text}
}

type toolStartData struct {
	Name  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	ID    string          `json:"tool_id"`
}

type toolCompleteData struct {
	Name    string `json:"tool_name"`
	ID      string `json:"tool_id"`
	Result  string `json:"result"`
	Millis  int64  `json:"duration_ms"`
	IsError bool   `json:"is_error"`
}

type completeData struct {
	Status string     `json:"status"`
	Turns  int        `json:"num_turns"`
	Millis int64      `json:"duration_ms"`
	Cost   *float64   `json:"total_cost_usd"`
	Usage  *usageData `json:"usage"`
	Model  *string    `json:"model"`
}

type usageData struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type errorData struct {
	Message string `json:"message"`
	Type    string `json:"error_type"`
}

type cancelledData struct {
	Message   string `json:"message"`
	Resumable bool   `json:"resumable"`
}

type turnData struct {
	Number   int      `json:"turn_number"`
	Prompt   string   `json:"prompt_preview"`
	Response string   `json:"response_preview"`
	Millis   int64    `json:"duration_ms"`
	Tools    []string `json:"tools_used"`
}

type connectData struct {
	Session string `json:"session_id"`
}

type disconnectData struct {
	Session string `json:"session_id"`
	Turns   int    `json:"total_turns"`
	Millis  int64  `json:"total_duration_ms"`
}
