package embed_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/require"
)

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	t0 := time.Now()
	n, err := embed.Start(ctx, embed.Options{DataDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	require.NoError(t, err)
	t.Log("ready after", time.Since(t0))
	defer func() { require.NoError(t, n.Stop(context.Background())) }()
	ac, err := n.Connect(ctx, roles.AgentID("local"))
	require.NoError(t, err)
	defer ac.Close()
	tc, err := n.Connect(ctx, roles.ConnectorID("terminal"))
	require.NoError(t, err)
	defer tc.Close()
	asker := bus.NewAsker(ac, "local")
	defer asker.Close()
	d, err := asker.Ask(ctx, schemas.Request{SessionID: "S", Kind: schemas.KindToolCall, Title: "Read", ToolName: "Read", ActionType: schemas.ActionFileRead, ActionDetails: []byte(`{"file_path":"/x"}`)})
	require.NoError(t, err)
	t.Logf("%+v", d)
	q, err := asker.Submit(ctx, schemas.Request{SessionID: "S", Kind: schemas.KindToolCall, Title: "Bash", ToolName: "Bash", ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"rm -rf build"}`)})
	require.NoError(t, err)
	t.Logf("%+v", q.Receipt)
	var page schemas.Page
	require.NoError(t, tc.CallInto(ctx, schemas.QuerySubject("terminal", "pending"), schemas.Query{Type: schemas.TypeQuery}, &page))
	t.Logf("%+v", page)
	require.Len(t, page.Prompts, 1)
	p := page.Prompts[0]
	var got schemas.Decision
	require.NoError(t, tc.CallInto(ctx, schemas.AnswerSubject("terminal", p.SessionID, p.PendingID), schemas.Answer{Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, OptionID: "allow_once", From: schemas.From{UserID: "root"}}, &got))
	d, err = q.Await(ctx)
	require.NoError(t, err)
	require.Equal(t, got, d)
}
