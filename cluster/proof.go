package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// forwardedHeader is in each request that a server forwards. Its value says to which owner,
// and from which client the request came, and proves both with the key of the servers.
const forwardedHeader = "Tapedeck-Forwarded"

// ownerHeader is in the answer of a server that is not the owner, with the status 421. It
// has read nothing of the body, and has done nothing.
const ownerHeader = "Tapedeck-Owner"

// proof returns the value of forwardedHeader for a request. uri is the path with the query
// as they are sent.
func proof(key []byte, owner, method, host, uri, client string) string {
	v := url.Values{"to": {owner}, "for": {client}}
	v.Set("mac", hex.EncodeToString(sign(key, owner, method, host, uri, client)))
	return v.Encode()
}

// sign returns an HMAC of the parts. The length of each part is signed, too: otherwise two
// lists of parts could have the same bytes.
func sign(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		n := len(p)
		h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// verify returns to which owner another server has forwarded r, "" if a client has sent it.
// Then r has the address of the client of the other server. A request that only claims to be
// forwarded is refused: if it were served as that of a client, two servers with different
// keys could forward it to each other without end.
func (n *Node) verify(r *http.Request) (to string, err error) {
	values, ok := r.Header[forwardedHeader]
	if !ok {
		return "", nil
	}
	n.mu.Lock()
	key := n.key
	n.mu.Unlock()
	refused := tapedeck.Errorf(tapedeck.Forbidden, "the header %s is only for the servers of this database", forwardedHeader).
		WithHint("leave it out")
	v, err := url.ParseQuery(strings.Join(values, "&"))
	if err != nil || key == nil || len(values) != 1 {
		return "", refused
	}
	to, client := v.Get("to"), v.Get("for")
	mac, err := hex.DecodeString(v.Get("mac"))
	if err != nil || to == "" || !hmac.Equal(mac, sign(key, to, r.Method, r.Host, r.RequestURI, client)) {
		return "", refused
	}
	delete(r.Header, forwardedHeader)
	r.RemoteAddr = client
	return to, nil
}

// misdirected answers a request that was forwarded to this server although it is not the
// owner.
func misdirected(w http.ResponseWriter) {
	w.Header().Set(ownerHeader, "another")
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "this server is not the owner of the database", http.StatusMisdirectedRequest)
}
