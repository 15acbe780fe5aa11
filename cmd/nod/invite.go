package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
)

type inviteCmd struct {
	Name    string `arg:"" help:"A name for the agent of the other machine."`
	Address string `placeholder:"HOST:PORT" help:"The address at which that machine reaches nod here (this host's name, and the port that nod listens on)."`
}

func (c *inviteCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL != "" {
		return errors.New("nod invite is for the nod of this machine: for other servers make a key with nod keys add, and name them with --nats-url")
	}
	address := c.Address
	if address == "" {
		if address, err = defaultAddress(place.DataDir); err != nil {
			return err
		}
	} else if host, _, err := splitAddr(address); err != nil || host == "" {
		return fmt.Errorf("%q is no address that another machine reaches: use HOST:PORT, such as devbox:%d", address, preferredPort)
	}
	keys, err := e.keys()
	if err != nil {
		return err
	}
	if err := e.checkJobs(keys, roles.AgentID(c.Name)); err != nil {
		return err
	}
	invitation, err := bus.Invite(place.DataDir, c.Name, address)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is invited already, or has a key of this name: name another: %w", c.Name, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "nod join %s\n", invitation)
	fmt.Fprintf(e.stderr, "run this on the other machine: it is a secret, and each program that has it can ask as %s\n", c.Name)
	fmt.Fprintf(e.stderr, "it works once nod up is started again with an address that %s leads to: nod up --listen ADDR\n", address)
	return nil
}

// defaultAddress returns this machine's name, with the port of the nod that runs on dataDir. If no nod
// runs on dataDir, the port is preferredPort.
func defaultAddress(dataDir string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find this host's name: %w: say --address", err)
	}
	port := preferredPort
	run, err := bus.ReadRun(dataDir)
	if err == nil {
		_, port, err = splitAddr(strings.TrimPrefix(run.URL, "nats://"))
	}
	if err != nil && !errors.Is(err, bus.ErrNotRunning) {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

type joinCmd struct {
	Invitation string `arg:"" help:"The line that nod invite printed; - reads it from standard input, so that no list of processes shows it."`
}

func (c *joinCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	word, err := []byte(c.Invitation), error(nil)
	if c.Invitation == "-" {
		word, err = e.readInput("-")
	}
	if err != nil {
		return fmt.Errorf("read the invitation: %w", err)
	}
	invitation, err := bus.ParseInvitation(strings.TrimPrefix(strings.TrimSpace(string(word)), "nod join "))
	if err != nil {
		return err
	}
	if err := invitation.Join(place.DataDir); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "this machine asks the nod at %s, as the agent %s\n", invitation.URL, invitation.Agent)
	return nil
}
