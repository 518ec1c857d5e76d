package agui

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// routeCopilot adds the routes that a CopilotKit front end expects of its runtime.
// They are not a public protocol: conformance/agui has the version that they are
// tested with.
func (h *handler) routeCopilot() {
	h.Handle(http.MethodGet, CopilotRoot+"/info", func(w http.ResponseWriter, _ *http.Request) error { return h.info(w) })
	h.Handle(http.MethodPost, CopilotRoot+"/agent/{agent}/run", h.run)
	h.Handle(http.MethodPost, CopilotRoot+"/agent/{agent}/connect", h.connect)
	h.Handle(http.MethodPost, CopilotRoot+"/agent/{agent}/stop/{thread}", h.stop)
	h.Handle(http.MethodGet, CopilotRoot+"/threads", h.threads)
	h.Handle(http.MethodPatch, CopilotRoot+"/threads/{thread}", h.changeThread)
	h.Handle(http.MethodPost, CopilotRoot+"/threads/{thread}/archive", h.archiveThread)
	h.Handle(http.MethodDelete, CopilotRoot+"/threads/{thread}", h.deleteThread)
	h.Handle(http.MethodPost, CopilotRoot, h.single)
}

// An agentInfo describes an agent to CopilotKit.
type agentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ClassName   string `json:"className"`
}

// info describes the runtime.
func (h *handler) info(w http.ResponseWriter) error {
	agents := map[string]agentInfo{}
	for i, a := range h.Verbs.Agents() {
		d := agentInfo{a.Name, a.Description, "Tapedeck"}
		agents[a.Name] = d
		if i == 0 {
			if _, taken := agents[defaultAgent]; !taken {
				agents[defaultAgent] = d
			}
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{
		"version": h.Version, "mode": "sse", "agents": agents,
		"audioFileTranscriptionEnabled": false, "telemetryDisabled": true,
		"threadEndpoints": map[string]bool{"list": true, "inspect": false, "mutations": true, "realtimeMetadata": false},
	})
}

// single serves the requests of a client that sends all of them to one path.
func (h *handler) single(w http.ResponseWriter, r *http.Request) error {
	body, err := h.readJSON(w, r)
	if err != nil {
		return err
	}
	var d struct {
		Method string `json:"method"`
		Params struct {
			Agent  string `json:"agentId"`
			Thread string `json:"threadId"`
		} `json:"params"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return notInput(err)
	}
	switch d.Method {
	case "info":
		return h.info(w)
	case "agent/run", "agent/connect":
		in, err := h.parseInput(d.Body, d.Params.Agent)
		switch {
		case err != nil:
			return err
		case d.Method == "agent/run":
			return h.runInput(w, r, in)
		}
		return h.reattach(w, r, in)
	case "agent/stop":
		var run struct {
			ID string `json:"runId"`
		}
		if d.Body != nil && json.Unmarshal(d.Body, &run) != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the runId must be a string")
		}
		return h.stopRun(w, r, d.Params.Agent, d.Params.Thread, run.ID)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no method %.100q", d.Method).WithHint("the methods are info, agent/run, agent/connect and agent/stop")
}
