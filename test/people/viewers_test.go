package people

import (
	"context"
	"testing"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestAReconnectedViewerGetsMissedDecisions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	wire := env.Wire()
	conn := env.Dial(roles.ConnectorID("web"), wire.URL)
	defer conn.Close()
	system := actors.NewSystem(rig.Quiet())
	defer system.Stop()
	shown := make(chan schemas.Prompt, 100)
	viewer, err := connector.View(env.Ctx, system, conn, "web", rig.Quiet(), func(p schemas.Prompt) { shown <- p })
	env.NoError(err)
	defer func() { env.NoError(viewer.Stop(context.Background())) }()

	ended := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Agent("ada").Asks(rig.Deploy("S", "2"))
	for range 2 {
		env.Nil((<-shown).Decision)
	}
	wire.Hold()
	d := env.Ann().Denies(ended)
	env.Soon("the outbox is idle", env.OutboxIdle)
	env.Empty(shown)
	wire.Cut()
	p := <-shown
	env.Equal("1", p.PendingID)
	env.Equal(d, *p.Decision)
}

func TestAnOlderViewThatComesLateIsNotShown(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	conn := env.Conn(roles.ConnectorID("terminal"))
	system := actors.NewSystem(rig.Quiet())
	defer system.Stop()
	shown := make(chan schemas.Prompt, 100)
	viewer, err := connector.View(env.Ctx, system, conn, "terminal", rig.Quiet(), func(p schemas.Prompt) { shown <- p })
	env.NoError(err)
	defer func() { env.NoError(viewer.Stop(context.Background())) }()
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	late := <-shown
	env.Ann().Denies(q)
	env.NotNil((<-shown).Decision)
	engine := env.Conn(roles.ID{Role: roles.Engine})
	env.NoError(engine.Publish(schemas.ViewSubject("S", "1"), late))
	env.NoError(engine.PublishVersion(schemas.ViewSubject("S", "1"), late, "S.1", late.Revision))
	env.NoError(engine.Flush(env.Ctx))
	env.Agent("ada").Asks(rig.Deploy("S", "2"))
	env.Equal("2", (<-shown).PendingID, "the late version came before this one on the same connection, and must not be shown")
}
