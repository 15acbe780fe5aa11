package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// namespaces is a private network with a network namespace for each server and each engine. A bridge connects
// them to the machine's own namespace, in which the tests, the Telegram server and the workers run. The
// network has no route to other networks. Only root can make it.
type namespaces struct {
	prefix string // the beginning of the names of all namespaces and links, with the id of this process
	subnet string
	hosts  map[string]int // for each namespace, the last number of its IP address

	mu     sync.Mutex
	holes  map[string]int // the number of cuts on each route
	remove []string       // the arguments of the ip commands that remove the network
}

const outside = ""

func newNamespaces(inside []string) (*namespaces, error) {
	pid := os.Getpid()
	n := &namespaces{prefix: fmt.Sprintf("nch%d", pid), subnet: fmt.Sprintf("10.213.%d.", pid%250), hosts: map[string]int{outside: 1}, holes: map[string]int{}}
	sweepNamespaces()
	bridge := n.prefix + "b"
	n.remove = append(n.remove, "link del "+bridge)
	commands := []string{"link add " + bridge + " type bridge", "addr add " + n.ip(outside) + "/24 dev " + bridge, "link set " + bridge + " up"}
	for i, who := range inside {
		n.hosts[who] = 10 + i
		space, wire := n.space(who), fmt.Sprintf("%sv%d", n.prefix, i)
		n.remove = append(n.remove, "netns del "+space)
		commands = append(commands,
			"netns add "+space,
			"link add "+wire+" type veth peer name eth0 netns "+space,
			"link set "+wire+" master "+bridge+" up",
			"-n "+space+" addr add "+n.ip(who)+"/24 dev eth0",
			"-n "+space+" link set eth0 up",
			"-n "+space+" link set lo up")
	}
	for _, c := range commands {
		if err := ip(c); err != nil {
			return nil, errors.Join(err, n.close())
		}
	}
	return n, nil
}

// sweepNamespaces removes the namespaces of earlier test processes that were killed.
func sweepNamespaces() {
	listed, _ := exec.Command("ip", "netns", "list").Output() // after an error, the list of namespaces is empty, and nothing is removed
	for line := range strings.Lines(string(listed)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		var pid int
		if _, err := fmt.Sscanf(name, "nch%d-", &pid); err == nil && syscall.Kill(pid, 0) != nil {
			_, _ = ip("netns del "+name), ip(fmt.Sprintf("link del nch%db", pid)) // each of the two commands fails if another test process has just removed the namespace
		}
	}
}

func ip(args string) error {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, out)
	}
	return nil
}

func (n *namespaces) space(who string) string { return n.prefix + "-" + who }

func (n *namespaces) ip(who string) string { return fmt.Sprint(n.subnet, n.hosts[who]) }

// The method in returns the words to write before a command, so that it runs in a namespace. For the
// machine's own namespace the method returns nil.
func (n *namespaces) in(who string) []string {
	if _, inside := n.hosts[who]; !inside {
		return nil
	}
	return []string{"ip", "netns", "exec", n.space(who)}
}

func (n *namespaces) close() error {
	var errs []error
	for _, c := range n.remove {
		errs = append(errs, ip(c))
	}
	return errors.Join(errs...)
}

// The method hole begins or ends a cut of the route from one namespace to another. After several cuts, the
// route works again when all of them have ended.
func (n *namespaces) hole(from, to string, cut bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := from + ">" + to
	verb, change := "add", -1
	if cut {
		change = 1
	} else {
		verb = "del"
	}
	was := n.holes[name]
	n.holes[name] = was + change
	if was != 0 && was+change != 0 {
		return nil
	}
	at := ""
	if from != outside {
		at = "-n " + n.space(from) + " "
	}
	return ip(at + "route " + verb + " blackhole " + n.ip(to) + "/32")
}

// road is a network path between two namespaces. A cut affects both directions.
type road struct {
	net      *namespaces
	from, to string
	port     int
}

func (r *road) addr() string { return fmt.Sprintf("%s:%d", r.net.ip(r.to), r.port) }

func (r *road) sever() error {
	return errors.Join(r.net.hole(r.from, r.to, true), r.net.hole(r.to, r.from, true))
}
func (r *road) mend() error {
	return errors.Join(r.net.hole(r.from, r.to, false), r.net.hole(r.to, r.from, false))
}

// The method slow does nothing, because only proxies can delay packets.
func (r *road) slow(time.Duration) {}

func (r *road) close() error { return nil }
