package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client is a client of the standard library, as a program that uses either server would
// have it.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 5000, DisableCompression: true}, Timeout: time.Minute}

// send sends one request and returns the answer.
func send(method, u, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequest(method, u, body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s %s", method, u, resp.Status, strings.TrimSpace(string(text)))
	}
	return resp, nil
}

// sendAll sends one request and discards the body of the answer.
func sendAll(method, u, contentType string, body io.Reader) error {
	resp, err := send(method, u, contentType, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}
