package rig

import (
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Notices sends the notices of a session to the Go channel heard.
func Notices(env *Env, a *Agent, session string, heard chan schemas.Notice) {
	env.T.Helper()
	_, err := a.Conn.Subscribe(schemas.NoticeSubject(a.Name, session), func(m bus.Message) {
		var n schemas.Notice
		if schemas.Decode(m.Data, &n) == nil {
			heard <- n
		}
	})
	env.NoError(err)
	env.NoError(a.Conn.Flush(env.Ctx))
}

// Next waits for the next notice and returns it.
func Next(env *Env, heard chan schemas.Notice) schemas.Notice {
	env.T.Helper()
	select {
	case n := <-heard:
		return n
	case <-env.Ctx.Done():
		env.FailNow("no notice came")
		return schemas.Notice{}
	}
}
