package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/voice"
)

type voiceCmd struct {
	URL     string   `name:"url" placeholder:"URL" default:"http://127.0.0.1:4284" help:"The address of the voice connector."`
	Token   string   `name:"token-file" placeholder:"FILE" type:"path" help:"The file with this client's token, made if it does not exist (DATA/voice/token)."`
	Pair    string   `placeholder:"CODE" help:"Send the code that nod pair voice shows, and end."`
	Session []string `placeholder:"ID" help:"A session of which this client holds the input lock: its requests wait 300 s."`
}

// maxHeard is the longest line of a speech program, in bytes.
const maxHeard = 16 << 10

// Run reads transcripts from standard input, one per line, and writes the sentences to speak to
// standard output, one per line.
func (c *voiceCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if c.Token == "" {
		c.Token = filepath.Join(place.DataDir, "voice", "token")
	}
	token, err := httpserve.Token(c.Token)
	if err != nil {
		return err
	}
	client := voice.Client{URL: c.URL, Token: token, Sessions: c.Session, Log: e.log}
	if c.Pair != "" {
		id, err := client.Pair(e.ctx, c.Pair)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "The code is right. This client is %s. It can answer as soon as nod pair accepts it, in the terminal where that runs.\n", id)
		return nil
	}
	err = client.Run(e.ctx, e.heard(), func(l voice.Line) error {
		_, err := fmt.Fprintln(e.stdout, l.Text)
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// heard returns a channel with the lines of standard input. The channel is closed at the end of the input.
func (e *env) heard() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(e.stdin)
		in.Buffer(nil, maxHeard)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-e.ctx.Done():
				return
			}
		}
	}()
	return lines
}
