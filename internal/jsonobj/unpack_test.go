package jsonobj

import (
	"encoding/json"
	"reflect"
	"testing"
)

type unpacked struct {
	ID     string          `json:"id"`
	Flag   *bool           `json:"flag"`
	Count  int             `json:"count"`
	Raw    json.RawMessage `json:"raw"`
	Nested struct {
		A string `json:"a"`
		B string `json:"b"`
	} `json:"nested"`
	List []struct {
		ID string `json:"id"`
	} `json:"list"`
	Labels map[string]string `json:"labels"`
}

func TestUnpack(t *testing.T) {
	for data, want := range map[string]struct {
		fits bool
		set  func(*unpacked)
	}{
		`{}`:                       {true, func(*unpacked) {}},
		` { "id" : "x\u00e4\n" } `: {true, func(u *unpacked) { u.ID = "xä\n" }},
		`{"ID":"x","iD":7}`:        {true, func(*unpacked) {}},
		`{"\u0069d":"x"}`:          {true, func(u *unpacked) { u.ID = "x" }},
		`{"id":"x","id":null}`:     {true, func(*unpacked) {}},
		`{"id":7,"id":"x"}`:        {true, func(u *unpacked) { u.ID = "x" }},
		`{"id":"x","id":7}`:        {false, func(*unpacked) {}},
		`{"id":"x","count":"7"}`:   {false, func(u *unpacked) { u.ID = "x" }},
		`{"flag":false,"raw":null,"count":7}`: {true, func(u *unpacked) {
			u.Flag, u.Raw, u.Count = new(bool), json.RawMessage("null"), 7
		}},
		`{"count":1.0}`:                           {true, func(u *unpacked) { u.Count = 1 }},
		`{"count":1e3}`:                           {true, func(u *unpacked) { u.Count = 1000 }},
		`{"count":1.5}`:                           {false, func(*unpacked) {}},
		`{"count":-1e300}`:                        {false, func(*unpacked) {}},
		`{"count":9007199254740993}`:              {true, func(u *unpacked) { u.Count = 9007199254740993 }},
		`{"flag":1}`:                              {false, func(*unpacked) {}},
		`{"nested":{"a":"1"},"nested":{"b":"2"}}`: {true, func(u *unpacked) { u.Nested.B = "2" }},
		`{"nested":{"a":1,"b":"2"}}`:              {false, func(u *unpacked) { u.Nested.B = "2" }},
		`{"nested":[]}`:                           {false, func(*unpacked) {}},
		`{"list":[{"id":"1"},null,{"Id":"3"}]}`: {true, func(u *unpacked) {
			u.List = make([]struct {
				ID string `json:"id"`
			}, 3)
			u.List[0].ID = "1"
		}},
		`{"list":[]}`: {true, func(u *unpacked) {
			u.List = []struct {
				ID string `json:"id"`
			}{}
		}},
		` { "list" : [ { "id" : "],[" } , {"id":[[1,2],{"a":3}]} ] } `: {false, func(u *unpacked) {
			u.List = make([]struct {
				ID string `json:"id"`
			}, 2)
			u.List[0].ID = "],["
		}},
		`{"list":{"0":{"id":"1"}}}`: {false, func(*unpacked) {}},
		`{"list":"[]"}`:             {false, func(*unpacked) {}},
		`{"labels":{"K":"v"}}`:      {true, func(u *unpacked) { u.Labels = map[string]string{"K": "v"} }},
		`[]`:                        {false, func(*unpacked) {}},
		`{"id":"x"`:                 {false, func(*unpacked) {}},
		``:                          {false, func(*unpacked) {}},
	} {
		var got, set unpacked
		fits := Unpack([]byte(data), &got)
		want.set(&set)
		if fits != want.fits || !reflect.DeepEqual(got, set) {
			t.Errorf("%s: %t, %+v; want %t, %+v", data, fits, got, want.fits, set)
		}
	}
}
