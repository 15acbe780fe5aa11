package egress

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// SOCKS 5 (RFC 1928), without authentication. The only command is CONNECT.
const (
	socksVersion    = 5
	socksConnect    = 1
	socksIPv4       = 1
	socksName       = 3
	socksIPv6       = 4
	socksDone       = 0
	socksFailed     = 1
	socksNotAllowed = 2
	socksNoCommand  = 7
)

func (p *Proxy) serveSocks(conn net.Conn, in *bufio.Reader) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, in, int64(head[1])); err != nil {
		return
	}
	if _, err := conn.Write([]byte{socksVersion, 0}); err != nil {
		return
	}
	command, to, err := readSocksRequest(in)
	if err != nil {
		return
	}
	reply := func(code byte) { _, _ = conn.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}) }
	if command != socksConnect {
		reply(socksNoCommand)
		return
	}
	out, err := p.dial(to)
	if err != nil {
		var refused *refusedError
		if errors.As(err, &refused) {
			reply(socksNotAllowed)
		} else {
			reply(socksFailed)
		}
		return
	}
	if !p.keep(out) {
		out.Close()
		return
	}
	defer p.drop(out)
	_ = conn.SetReadDeadline(time.Time{})
	reply(socksDone)
	join(conn, in, out)
}

func readSocksRequest(in io.Reader) (command byte, to string, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil {
		return 0, "", err
	}
	size := 0
	switch head[3] {
	case socksIPv4:
		size = net.IPv4len
	case socksIPv6:
		size = net.IPv6len
	case socksName:
		n := make([]byte, 1)
		if _, err := io.ReadFull(in, n); err != nil {
			return 0, "", err
		}
		size = int(n[0])
	default:
		return 0, "", errors.New("unknown kind of address")
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(in, rest); err != nil {
		return 0, "", err
	}
	host := string(rest[:size])
	if head[3] != socksName {
		a, _ := netip.AddrFromSlice(rest[:size])
		host = a.Unmap().String()
	}
	port := int(rest[size])<<8 | int(rest[size+1])
	return head[1], net.JoinHostPort(host, strconv.Itoa(port)), nil
}
