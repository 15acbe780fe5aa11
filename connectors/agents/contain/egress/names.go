package egress

import (
	"net"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// maxNames is the largest number of names that LookedUp returns, because a command can look up many.
const maxNames = 100

// maxQuery is the largest DNS query over UDP, in bytes (RFC 6891 recommends this size).
const maxQuery = 4096

// ServeNames reads DNS queries until Close, notes the names in them, and answers each query with a
// server failure. Because of this answer, a program gives up at once and can report the name.
// Without an answer, the program would wait.
func (p *Proxy) ServeNames(conn net.PacketConn) {
	if !p.keep(conn) {
		conn.Close()
		return
	}
	defer p.drop(conn)
	query := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFrom(query)
		if err != nil {
			return
		}
		name, reply := refuseQuery(query[:n])
		if reply == nil {
			continue
		}
		p.noteName(name)
		_, _ = conn.WriteTo(reply, from)
	}
}

// refuseQuery returns the name in a DNS query, and a reply that reports a server failure. The reply is
// nil if the query is malformed.
func refuseQuery(query []byte) (name string, reply []byte) {
	var in dnsmessage.Parser
	head, err := in.Start(query)
	if err != nil || head.Response {
		return "", nil
	}
	q, err := in.Question()
	if err != nil {
		return "", nil
	}
	out := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true,
		RCode: dnsmessage.RCodeServerFailure,
	})
	if out.StartQuestions() != nil || out.Question(q) != nil {
		return "", nil
	}
	if reply, err = out.Finish(); err != nil {
		return "", nil
	}
	return q.Name.String(), reply
}

// noteName notes a name if it can belong to a host outside this machine and its local network.
func (p *Proxy) noteName(name string) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || strings.ContainsFunc(name, notInHost) || slices.Contains([]string{"arpa", "local", "localhost", "localdomain"}, name[dot+1:]) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.names) < maxNames && !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}

// LookedUp returns the host names that the command looked up without the proxy, in the order of
// the first attempts.
func (p *Proxy) LookedUp() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}
