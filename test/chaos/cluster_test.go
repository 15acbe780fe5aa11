package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	servers = 3
	engines = 3
	workers = 2
)

// cluster is three nats-servers with three replicas of every stream, three engines, and two Telegram workers.
// Each server, engine and worker is a process. Each connection to a server uses a way, which is a network
// path that a fault can cut.
type cluster struct {
	*site
	servers [servers]*process
	engines [engines]*process
	workers [workers]*process

	ports  [servers]int   // the ports of the servers for clients; connections to these ports use no way
	routes [servers]int   // the ports of the servers for connections between servers
	net    *namespaces    // the private network; nil if the ways are proxies
	disks  []func() error // functions that unmount the servers' disks
	// ways has the network paths, by client and then by server. The clients "n0" to "n2" are the other
	// servers. The other clients are "engine0" to "engine2", "workers", "agents" and "people".
	ways map[string][servers]way
}

func newCluster(ctx context.Context, dir string, p programs, disk int) (*cluster, error) {
	s, err := newSite(dir, p)
	if err != nil {
		return nil, err
	}
	c := &cluster{site: s, ways: map[string][servers]way{}}
	if disk > 0 {
		err = c.mount(disk)
	}
	if err == nil {
		err = c.build(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) build(ctx context.Context) error {
	if err := c.lay(); err != nil {
		return err
	}
	config := exec.Command(c.nod, "keys", "config", "--data", c.dir)
	accounts, err := config.Output()
	if err != nil {
		return fmt.Errorf("make the servers' accounts: %w", err)
	}
	for n := range servers {
		if err := c.write(fmt.Sprintf("n%d.conf", n), c.config(n, string(accounts))); err != nil {
			return err
		}
		c.servers[n] = c.server(n)
		if err := c.begin(ctx, c.servers[n]); err != nil {
			return err
		}
	}
	for n := range engines {
		c.engines[n] = c.engine(n)
		if err := c.beginEngine(ctx, c.engines[n]); err != nil {
			return err
		}
	}
	apply := c.command("people", "owner", "settings", "apply", filepath.Join(c.dir, "settings.json"))
	if said, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the settings: %w\n%s", err, said)
	}
	for n := range workers {
		c.workers[n] = c.worker(n)
		if err := c.begin(ctx, c.workers[n]); err != nil {
			return err
		}
	}
	return nil
}

// beginEngine starts an engine. If the engine ends because a server has not yet joined the cluster,
// beginEngine starts it again, as a supervisor would.
func (c *cluster) beginEngine(ctx context.Context, p *process) error {
	err := c.begin(ctx, p)
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for err != nil && strings.Contains(err.Error(), "no suitable peers for placement") {
		select {
		case <-within.Done():
			return err
		case <-time.After(time.Second):
			err = p.start(ctx)
		}
	}
	return err
}

// clients lists the clients that have their own network path to each server. The servers are not among
// them.
func (c *cluster) clients() []string {
	all := []string{"workers", "agents", "people"}
	for n := range engines {
		all = append(all, fmt.Sprint("engine", n))
	}
	return all
}

// The method lay finds free ports and makes the network paths. These are proxies, or roads between network
// namespaces.
func (c *cluster) lay() error {
	free, err := c.reserve(2 * servers)
	if err != nil {
		return err
	}
	copy(c.ports[:], free)
	copy(c.routes[:], free[servers:])
	if *flagNamespaces {
		inside := []string{"n0", "n1", "n2", "engine0", "engine1", "engine2"}
		if c.net, err = newNamespaces(inside); err != nil {
			return err
		}
	}
	for _, who := range c.clients() {
		if err := c.layFor(who, c.ports); err != nil {
			return err
		}
	}
	for n := range servers {
		if err := c.layFor(fmt.Sprint("n", n), c.routes); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) layFor(who string, ports [servers]int) error {
	var ways [servers]way
	for n, port := range ports {
		if c.net != nil {
			from := outside
			if c.net.in(who) != nil {
				from = who
			}
			ways[n] = &road{c.net, from, fmt.Sprint("n", n), port}
			continue
		}
		l, err := newLink(fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		ways[n] = l
	}
	c.ways[who] = ways
	return nil
}

// host returns the IP address on which a server listens.
func (c *cluster) host(n int) string {
	if c.net != nil {
		return c.net.ip(fmt.Sprint("n", n))
	}
	return "127.0.0.1"
}

// args returns a command line that runs a command in the client's network namespace. Without namespaces
// it returns the command unchanged.
func (c *cluster) args(who string, args ...string) []string {
	if c.net == nil {
		return args
	}
	return append(c.net.in(who), args...)
}

// config returns the configuration of one server. The server connects to the other servers over ways. It
// does not advertise its address, because clients would then connect to it without a way.
func (c *cluster) config(n int, accounts string) string {
	var routes []string
	for to, way := range c.ways[fmt.Sprint("n", n)] {
		if to != n {
			routes = append(routes, "nats://"+way.addr())
		}
	}
	return fmt.Sprintf(`server_name: n%d
listen: %s:%d
ping_interval: "5s"
ping_max: 2
jetstream { store_dir: %q, sync_interval: always }
cluster { name: c%d, listen: %s:%d, no_advertise: true, pool_size: -1, routes: [%s] }
%s`, n, c.host(n), c.ports[n], c.store(n), c.ports[0], c.host(n), c.routes[n], strings.Join(routes, ","), accounts)
}

func (c *cluster) store(n int) string { return filepath.Join(c.dir, fmt.Sprint("js", n)) }

func (c *cluster) server(n int) *process {
	return &process{
		name: fmt.Sprint("n", n), dir: c.dir,
		args: c.args(fmt.Sprint("n", n), c.natsServer, "-c", filepath.Join(c.dir, fmt.Sprintf("n%d.conf", n))),
		ready: func(ctx context.Context, _ <-chan string) error {
			return answers(ctx, fmt.Sprintf("%s:%d", c.host(n), c.ports[n]))
		},
	}
}

// The function answers waits until a NATS server replies at the address.
func answers(ctx context.Context, addr string) error {
	return every(ctx, 20*time.Millisecond, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		var hello [4]byte
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // if SetReadDeadline fails, the connection is closed, and Read fails too
		_, err = conn.Read(hello[:])
		return err == nil && string(hello[:]) == "INFO"
	})
}

// The function every calls f, with a pause after each call, until f returns true. If ctx ends
// first, every returns ctx's error.
func every(ctx context.Context, pause time.Duration, f func() bool) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !f() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func (c *cluster) engine(n int) *process {
	name := fmt.Sprint("engine", n)
	return &process{
		name: name, dir: c.dir, ready: says("an engine is up"),
		args: c.args(name, append(c.program("engine"), "--replicas", fmt.Sprint(servers), "--creds", c.key("engine"), "--store-creds", c.key("engine-store"))...),
		env:  []string{"NOD_URL=" + c.urls(name), "NOD_DATA=" + c.dir},
	}
}

// program returns the arguments that run a nod command. If the flag -keep is set, the command logs more.
func (c *cluster) program(name string) []string {
	if *flagKeep != "" {
		return []string{c.nod, name, "--verbose"}
	}
	return []string{c.nod, name}
}

func (c *cluster) worker(n int) *process {
	return &process{
		name: fmt.Sprint("worker", n), dir: c.dir, ready: says("the connector telegram is up"),
		args: append(c.program("connector"), "telegram", "--creds", c.key("connector-telegram")),
		env:  []string{"NOD_URL=" + c.urls("workers"), "NOD_DATA=" + c.dir},
	}
}

func (c *cluster) urls(client string) string {
	var urls []string
	for _, way := range c.ways[client] {
		urls = append(urls, "nats://"+way.addr())
	}
	return strings.Join(urls, ",")
}

func (c *cluster) command(client, key string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.nod, append(args, "--creds", c.key(key))...)
	cmd.Env = append(os.Environ(), "NOD_URL="+c.urls(client), "NOD_DATA="+c.dir)
	return cmd
}

// mount gives each server a disk of its own. The parameter bytes is the size of each disk.
func (c *cluster) mount(bytes int) error {
	for n := range servers {
		unmount, err := smallDisk(c.store(n), bytes)
		if err != nil {
			return err
		}
		c.disks = append(c.disks, unmount)
	}
	return nil
}

func (c *cluster) close() error {
	err := c.site.close()
	for _, unmount := range c.disks {
		err = errors.Join(err, unmount())
	}
	for _, ways := range c.ways {
		for _, w := range ways {
			err = errors.Join(err, w.close())
		}
	}
	if c.net != nil {
		err = errors.Join(err, c.net.close())
	}
	return err
}
