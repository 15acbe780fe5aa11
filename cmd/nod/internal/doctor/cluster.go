package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
)

// ExamineCluster checks the NATS servers of o.Place, the stores on them, and the engines. It needs the
// key of an observer, and changes nothing.
func ExamineCluster(ctx context.Context, o Options) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 6*checkTimeout)
	defer cancel()
	found, conn := servers(ctx, o)
	if conn == nil {
		return found
	}
	defer conn.Close()
	stores, err := conn.StoreStates(ctx)
	if err != nil {
		return append(found, wrong("stores", "JetStream does not reply: "+oneLine(err), "see that most of the servers run, and use the key of an observer: nod keys add observer"))
	}
	for i := range stores {
		found = append(found, store(&stores[i])...)
	}
	found = append(found, sameReplicas(stores)...)
	found = append(found, clocks(stores)...)
	found = append(found, engines(ctx, conn, o.Version)...)
	return append(found, note("disk", "no client can read whether the servers write to disk before they acknowledge", "see that each server's file has sync_interval: always in jetstream"))
}

// servers connects to each server in o.Place, and returns one of the connections.
func servers(ctx context.Context, o Options) (found []Finding, conn *bus.Conn) {
	const check = "servers"
	id := o.roles()[0]
	infos := map[string]bus.ServerInfo{}
	for _, url := range strings.Split(o.Place.URL, ",") {
		place := o.Place
		place.URL = strings.TrimSpace(url)
		c, err := bus.Join(ctx, place, id, o.Log)
		if err != nil {
			found = append(found, failed(check, err))
			continue
		}
		info := c.ServerInfo()
		if hostOf(info.URL) != hostOf(place.URL) { // the client has connected to another server of the cluster instead of this one
			c.Close()
			found = append(found, wrong(check, fmt.Sprintf("the NATS server at %s refused the key of %s, or was lost at once; %s took it", bus.Address(place.URL), id, people.Line(info.Name)), "give it the same accounts.conf as the others, and reload it"))
			continue
		}
		if infos[info.Name] = info; conn == nil {
			conn = c
		} else {
			c.Close()
		}
		if older(info.Version) {
			found = append(found, wrong(check, fmt.Sprintf("%s at %s runs nats-server %s, and nod needs %s or newer", people.Line(info.Name), bus.Address(place.URL), people.Line(info.Version), oldestServer), "upgrade it"))
			continue
		}
		found = append(found, ok(check, fmt.Sprintf("%s at %s runs, version %s, and accepts the key of %s", people.Line(info.Name), bus.Address(place.URL), info.Version, id)))
	}
	versions := map[string]bool{}
	for _, info := range infos {
		versions[info.Version] = true
	}
	if len(versions) > 1 {
		found = append(found, note(check, "the servers run different versions of NATS", "finish the upgrade"))
	}
	if conn != nil && len(infos) == 1 && conn.ServerInfo().Cluster != "" {
		found = append(found, note(check, "NOD_URL names one server of the cluster "+people.Line(conn.ServerInfo().Cluster), "name all servers, so that agents and engines go on without this one"))
	}
	return found, conn
}

// oldestServer is the oldest version of nats-server with which nod works.
const oldestServer = "2.15"

// older reports whether a server's version is below oldestServer. It returns false for a version that it
// cannot parse.
func older(version string) bool {
	major, minor, ok := majorMinor(version)
	wantMajor, wantMinor, _ := majorMinor(oldestServer)
	return ok && (major < wantMajor || major == wantMajor && minor < wantMinor)
}

// hostOf returns the host and the port of a server's URL. If the URL has no port, hostOf adds the default
// port of NATS, as a NATS client does.
func hostOf(url string) string {
	_, host, ok := strings.Cut(bus.Address(url), "://")
	if !ok {
		host = url
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "4222")
	}
	return host
}

// store checks one stream and its consumers.
func store(s *bus.StoreState) []Finding {
	check := "store " + strings.TrimPrefix(s.Name, "KV_")
	switch {
	case !s.Exists:
		return []Finding{wrong(check, "it does not exist", "start an engine, which makes it")}
	case s.Leader == "":
		return []Finding{wrong(check, "no server leads it, so it cannot be read or written", "see that most of the servers run and reach each other")}
	}
	var found []Finding
	if s.Err != nil {
		found = append(found, failed(check, s.Err))
	}
	if lost := behind(s.Followers); len(lost) > 0 {
		found = append(found, wrong(check, "replicas are missing: "+strings.Join(lost, "; "), "start these servers, or see why the others do not reach them"))
	}
	if s.Replicas < 3 {
		found = append(found, note(check, fmt.Sprintf("replicas: %d, so it is lost or stops with one server", s.Replicas), "start the engines with --replicas 3, or change the stream with nats stream edit"))
	}
	if len(s.Differs) > 0 {
		found = append(found, wrong(check, "its configuration differs from the one that nod makes in "+strings.Join(s.Differs, ", "), "change it back with nats stream edit "+s.Name))
	}
	if s.MaxBytes > 0 && s.Bytes > s.MaxBytes/10*9 {
		found = append(found, note(check, fmt.Sprintf("it has %d of at most %d bytes", s.Bytes, s.MaxBytes), "raise the limit before it is full"))
	}
	found = append(found, queues(check, s.Queues)...)
	if len(found) == 0 {
		found = append(found, ok(check, fmt.Sprintf("%s leads it, and %d replicas are current", people.Line(s.Leader), s.Replicas)))
	}
	return found
}

// behind describes the followers that lack the newest messages.
func behind(followers []bus.Follower) (lost []string) {
	for _, f := range followers {
		switch {
		case f.Offline:
			lost = append(lost, people.Line(f.Name)+" is offline")
		case !f.Current:
			heard := "" // empty if a new leader has not heard of the follower yet
			if f.Heard >= time.Second {
				heard = ", last heard of " + f.Heard.Round(time.Second).String() + " ago"
			}
			lost = append(lost, fmt.Sprintf("%s is not current (%d operations behind%s)", people.Line(f.Name), f.Lag, heard))
		}
	}
	slices.Sort(lost)
	return lost
}

// manyWaiting is the number of messages in a queue above which its readers count as absent or too slow.
const manyWaiting = 1000

func queues(check string, all []bus.QueueState) (found []Finding) {
	for _, q := range all {
		name := check + ", queue " + people.Line(q.Name)
		switch {
		case q.Leader == "":
			found = append(found, wrong(name, "no server leads it, so its messages are not delivered", "see that most of the servers run and reach each other"))
		case q.Readers == 0 && q.Waiting+q.Unacked > 0:
			found = append(found, wrong(name, fmt.Sprintf("no engine or worker reads it, and %d messages wait", q.Waiting+q.Unacked), "start an engine, or the connector of this name"))
		case q.Readers == 0:
			found = append(found, note(name, "no engine or worker reads it", "start an engine, or the connector of this name, unless it is no longer in use"))
		case q.Waiting > manyWaiting:
			found = append(found, note(name, fmt.Sprintf("%d messages wait", q.Waiting), "look at the logs of its engines or workers"))
		}
	}
	return found
}

func sameReplicas(stores []bus.StoreState) []Finding {
	counts := map[int][]string{}
	for _, s := range stores {
		if s.Leader != "" {
			counts[s.Replicas] = append(counts[s.Replicas], strings.TrimPrefix(s.Name, "KV_"))
		}
	}
	if len(counts) < 2 {
		return nil
	}
	var texts []string
	for n, names := range counts {
		texts = append(texts, fmt.Sprintf("%d for %s", n, strings.Join(names, ", ")))
	}
	slices.Sort(texts)
	return []Finding{wrong("stores", "the stores have different numbers of replicas: "+strings.Join(texts, "; "), "give all of them the larger number with nats stream edit")}
}

// clocks compares the clocks of this machine and of the servers that lead stores.
func clocks(stores []bus.StoreState) []Finding {
	const check, do = "clocks", "have the machines' clocks set by the network (NTP)"
	ahead := map[string]time.Duration{}
	for _, s := range stores {
		if s.ClockKnown {
			ahead[s.Leader] = s.Ahead
		}
	}
	if len(ahead) == 0 {
		return []Finding{note(check, "the servers' clocks cannot be read", "")}
	}
	var known []string
	first, last := time.Duration(1<<62), time.Duration(-1<<62)
	for name, d := range ahead {
		known, first, last = append(known, people.Line(name)), min(first, d), max(last, d)
	}
	slices.Sort(known)
	apart := max((max(last, 0) - min(first, 0)).Round(time.Millisecond), time.Millisecond) // zero stands for this machine, whose clock is 0 ahead of itself
	what := fmt.Sprintf("the clocks of this machine and of %s, which lead stores, are at most %s apart", strings.Join(known, ", "), apart)
	switch {
	case apart > clockWrong:
		return []Finding{wrong(check, what, do)}
	case apart > clockNote:
		return []Finding{note(check, what, do)}
	}
	return []Finding{ok(check, what)}
}

// engines checks the running engines: their number, their versions, and whether all have read the same
// settings, freezes and sessions.
func engines(ctx context.Context, conn *bus.Conn, version string) (found []Finding) {
	const check = "engines"
	all, err := conn.Instances(ctx)
	if err != nil {
		return []Finding{failed(check, err)}
	}
	all = slices.DeleteFunc(all, func(i bus.Instance) bool { return i.Service != "nod-engine" })
	switch len(all) {
	case 0:
		return []Finding{wrong(check, "none runs, so no request is answered", "start one: nod engine")}
	case 1:
		found = append(found, note(check, "one runs: if it stops, requests wait until another starts", "start a second one, on another machine"))
	default:
		found = append(found, ok(check, fmt.Sprintf("%d run", len(all))))
	}
	for _, i := range all {
		found = append(found, versions(check, "the engine "+i.ID, i.Version, version, "upgrade one engine after another, and then the commands"))
	}
	return append(found, follow(ctx, conn)...)
}

// follow compares the revisions that the engines have read. If an engine is behind, follow looks again
// after lateBy.
func follow(ctx context.Context, conn *bus.Conn) []Finding {
	const check = "engines"
	late, err := laggards(ctx, conn)
	if err == nil && len(late) > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(lateBy):
		}
		late, err = laggards(ctx, conn)
	}
	switch {
	case err != nil:
		return []Finding{failed(check, err)}
	case len(late) > 0:
		return []Finding{wrong(check, "these have not read the newest settings, freezes or sessions: "+strings.Join(late, ", "), "see that they reach the servers; an engine that stays behind can be started again")}
	}
	return []Finding{ok(check, "all have read the same settings, freezes and sessions")}
}

// lateBy is how long an engine may be late in reading a change.
const lateBy = 2 * time.Second

// laggards returns the ids of the engines whose revisions are lower than those of another engine.
func laggards(ctx context.Context, conn *bus.Conn) (ids []string, err error) {
	stats, err := conn.ServiceStats(ctx, "nod-engine")
	if err != nil {
		return nil, err
	}
	newest := map[string]float64{}
	revisions := make([]map[string]float64, len(stats))
	for i, s := range stats {
		if err := s.Into(&revisions[i]); err != nil {
			return nil, fmt.Errorf("read the statistics of the engine %s: %w", s.ID, err)
		}
		for name, revision := range revisions[i] {
			newest[name] = max(newest[name], revision)
		}
	}
	for i, s := range stats {
		for name, revision := range revisions[i] {
			if strings.HasSuffix(name, "_revision") && revision < newest[name] {
				ids = append(ids, s.ID)
				break
			}
		}
	}
	return ids, nil
}
