package bus_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// rightsTable has the rights of each role to publish and to subscribe, written down independently of
// the code. With every role the test tries the subjects of all roles, and some subjects that no role
// has.
var rightsTable = map[roles.ID]struct{ pub, sub string }{
	asAda: {
		pub: `nod.v1.request.ada.s.1 nod.v1.withdraw.ada.s.1 nod.v1.await.ada nod.v1.grant.ada nod.v1.gate.ada nod.v1.passed.ada
			nod.v1.session.ada`,
		sub: `nod.v1.decision.ada.> nod.v1.decision.ada.s.1 nod.v1.notice.ada.> _INBOX.agent.ada.>`,
	},
	asBob: {
		pub: `nod.v1.request.bob.s.1 nod.v1.withdraw.bob.s.1 nod.v1.await.bob nod.v1.grant.bob nod.v1.gate.bob nod.v1.passed.bob
			nod.v1.session.bob`,
		sub: `nod.v1.decision.bob.> nod.v1.decision.bob.s.1 nod.v1.notice.bob.> _INBOX.agent.bob.>`,
	},
	asTerminal: {
		pub: `nod.v1.answer.terminal.s.1 nod.v1.presence.terminal nod.v1.register.terminal nod.v1.query.terminal.pending
			nod.v1.manage.terminal.revoke nod.v1.manage.terminal.freeze nod.v1.manage.terminal.thaw nod.v1.manage.terminal.pass`,
		sub: `nod.v1.view.> nod.v1.view.s.1 _INBOX.connector.terminal.> $SRV.INFO $SRV.INFO.nod-connector-terminal
			$SRV.INFO.nod-connector-terminal.x`,
	},
	asWeb: {
		pub: `nod.v1.answer.web.s.1 nod.v1.presence.web nod.v1.register.web nod.v1.query.web.pending
			nod.v1.manage.web.revoke nod.v1.manage.web.freeze nod.v1.manage.web.thaw nod.v1.manage.web.pass`,
		sub: `nod.v1.view.> nod.v1.view.s.1 _INBOX.connector.web.> $SRV.INFO $SRV.INFO.nod-connector-web
			$SRV.INFO.nod-connector-web.x`,
	},
	asTg: {
		pub: `nod.v1.answer.tg.s.1 nod.v1.presence.tg nod.v1.register.tg nod.v1.query.tg.pending nod.v1.shown.tg
			nod.v1.manage.tg.revoke nod.v1.manage.tg.freeze nod.v1.manage.tg.thaw nod.v1.manage.tg.pair nod.v1.manage.tg.pass
			nod.v1.delivery.tg $JS.API.CONSUMER.MSG.NEXT.permission_prompts.tg
			$JS.API.CONSUMER.INFO.permission_prompts.tg _NOD.consumer_info.tg
			$JS.ACK.permission_prompts.tg.1.1.1.1.1 $JS.ACK._.hash.permission_prompts.tg.1.1.1.1.1`,
		sub: `_INBOX.connector.tg.> $SRV.INFO $SRV.INFO.nod-connector-tg $SRV.INFO.nod-connector-tg.x`,
	},
	asWa: {
		pub: `nod.v1.answer.wa.s.1 nod.v1.presence.wa nod.v1.register.wa nod.v1.query.wa.pending nod.v1.shown.wa
			nod.v1.manage.wa.revoke nod.v1.manage.wa.freeze nod.v1.manage.wa.thaw nod.v1.manage.wa.pair nod.v1.manage.wa.pass
			nod.v1.delivery.wa $JS.API.CONSUMER.MSG.NEXT.permission_prompts.wa
			$JS.API.CONSUMER.INFO.permission_prompts.wa _NOD.consumer_info.wa
			$JS.ACK.permission_prompts.wa.1.1.1.1.1 $JS.ACK._.hash.permission_prompts.wa.1.1.1.1.1
			$JS.ACK.permission_prompts.wa.permission_prompts.tg.1.1.1`,
		sub: `_INBOX.connector.wa.> $SRV.INFO $SRV.INFO.nod-connector-wa $SRV.INFO.nod-connector-wa.x`,
	},
	asEngine: {
		pub: `nod.v1.decision.ada.s.1 nod.v1.decision.bob.s.1 nod.v1.notice.ada.s nod.v1.notice.bob.s nod.v1.view.s.1
			_INBOX.agent.ada.x _INBOX.agent.bob.x _INBOX.connector.tg.x _INBOX.owner.x _INBOX.engine.x
			_INBOX.engine-store.x _INBOX.observer.x _R_.x.y $SRV.STATS.nod-engine`,
		sub: `nod.v1.request.> nod.v1.withdraw.> nod.v1.await.> nod.v1.grant.> nod.v1.gate.> nod.v1.passed.> nod.v1.session.>
			nod.v1.answer.> nod.v1.presence.> nod.v1.register.> nod.v1.shown.> nod.v1.delivery.> nod.v1.query.>
			nod.v1.manage.> $SRV.INFO $SRV.INFO.nod-engine $SRV.INFO.nod-engine.x _NOD.watch.> _NOD.unwatch.>
			_INBOX.engine.>`,
	},
	asEngineStore: {
		pub: `$KV.pending_permissions.s.1 $KV.permission_sessions.s $KV.client_presence.s.c $KV.shown_prompts.tg.1.s.1
			$KV.permission_settings.settings nod.v1.timer.s.1 nod.v1.log.s nod.v1.prompt.tg.s.1
			$JS.API.INFO $JS.API.STREAM.NAMES $JS.API.STREAM.LIST
			$JS.API.STREAM.CREATE.permission_prompts $JS.API.STREAM.UPDATE.permission_prompts
			$JS.API.STREAM.INFO.permission_prompts $JS.API.STREAM.PURGE.permission_prompts
			$JS.API.STREAM.INFO.KV_pending_permissions $JS.API.STREAM.INFO.permission_log
			$JS.API.DIRECT.GET.KV_pending_permissions.$KV.pending_permissions.s.1 $JS.API.STREAM.INFO.KV_permission_settings
			$JS.API.STREAM.MSG.GET.KV_permission_settings $JS.API.CONSUMER.LIST.permission_prompts
			$JS.API.CONSUMER.NAMES.KV_pending_permissions $JS.API.CONSUMER.CREATE.KV_permission_settings.x
			$JS.API.CONSUMER.CREATE.KV_pending_permissions.x.$KV.pending_permissions.s.1
			$JS.API.CONSUMER.DELETE.KV_pending_permissions.outbox $JS.API.CONSUMER.DURABLE.CREATE.permission_log.x
			$JS.API.CONSUMER.PAUSE.KV_pending_permissions.outbox
			$JS.API.STREAM.MSG.GET.permission_log $JS.API.STREAM.MSG.GET.KV_pending_permissions
			$JS.API.CONSUMER.CREATE.permission_prompts.tg $JS.API.CONSUMER.DELETE.permission_prompts.wa
			$JS.API.CONSUMER.INFO.permission_prompts.tg $JS.API.CONSUMER.INFO.permission_prompts.wa
			$JS.API.CONSUMER.MSG.NEXT.permission_prompts.tg $JS.API.CONSUMER.MSG.NEXT.permission_prompts.wa
			$JS.API.CONSUMER.MSG.NEXT.KV_pending_permissions.outbox
			$JS.ACK.permission_prompts.tg.1.1.1.1.1 $JS.ACK._.hash.permission_prompts.tg.1.1.1.1.1
			$JS.ACK.permission_prompts.wa.1.1.1.1.1 $JS.ACK._.hash.permission_prompts.wa.1.1.1.1.1
			$JS.ACK.permission_prompts.wa.permission_prompts.tg.1.1.1 $JS.ACK.KV_pending_permissions.outbox.1.1.1.1.1
			$JS.ACK.permission_prompts.tg.1.1.1.1 $JS.ACK.permission_prompts.tg.1.1.1.1.1.1`,
		sub: `_INBOX.engine-store.>`,
	},
	asOwner: {
		pub: `nod.v1.manage.terminal.settings nod.v1.manage.web.settings nod.v1.manage.terminal.revoke nod.v1.manage.web.revoke nod.v1.manage.tg.revoke nod.v1.manage.wa.revoke
			nod.v1.manage.terminal.freeze nod.v1.manage.web.freeze nod.v1.manage.tg.freeze nod.v1.manage.wa.freeze
			nod.v1.manage.terminal.thaw nod.v1.manage.web.thaw nod.v1.manage.tg.thaw nod.v1.manage.wa.thaw
			nod.v1.manage.tg.pair nod.v1.manage.wa.pair
			nod.v1.manage.terminal.pass nod.v1.manage.web.pass nod.v1.manage.tg.pass nod.v1.manage.wa.pass
			nod.v1.query.terminal.pending nod.v1.query.web.pending nod.v1.query.tg.pending nod.v1.query.wa.pending
			nod.v1.answer.terminal.s.1 nod.v1.presence.terminal nod.v1.register.terminal
			nod.v1.query.observer.pending nod.v1.query.observer.show nod.v1.query.observer.history
			nod.v1.query.observer.session nod.v1.query.observer.grants nod.v1.query.observer.unsettled
			$SRV.PING $SRV.PING.nod-engine $SRV.INFO.nod-engine $SRV.STATS.nod-engine $SRV.STATS.nod-engine.x`,
		sub: `nod.v1.> nod.v1.*.*.> nod.v1.request.> nod.v1.withdraw.> nod.v1.await.> nod.v1.grant.> nod.v1.gate.> nod.v1.passed.>
			nod.v1.session.> nod.v1.answer.> nod.v1.presence.> nod.v1.register.> nod.v1.shown.> nod.v1.delivery.>
			nod.v1.query.> nod.v1.manage.> nod.v1.view.> nod.v1.view.s.1 nod.v1.decision.> nod.v1.decision.ada.>
			nod.v1.decision.ada.s.1 nod.v1.decision.bob.> nod.v1.decision.bob.s.1 nod.v1.notice.ada.>
			nod.v1.notice.bob.> nod.v1.log.> nod.v1.log.s nod.v1.timer.> nod.v1.due.> nod.v1.prompt.>
			_INBOX.owner.>`,
	},
	asObserver: {
		pub: `$JS.API.INFO $JS.API.STREAM.NAMES $JS.API.STREAM.LIST
			$JS.API.STREAM.INFO.permission_log $JS.API.STREAM.INFO.permission_prompts $JS.API.STREAM.INFO.KV_pending_permissions
			$JS.API.STREAM.MSG.GET.permission_log $JS.API.STREAM.MSG.GET.KV_pending_permissions
			$JS.API.DIRECT.GET.KV_pending_permissions.$KV.pending_permissions.s.1
			$JS.API.CONSUMER.LIST.permission_prompts $JS.API.CONSUMER.NAMES.KV_pending_permissions
			$JS.API.CONSUMER.INFO.permission_prompts.tg $JS.API.CONSUMER.INFO.permission_prompts.wa
			$JS.API.CONSUMER.CREATE.KV_pending_permissions.x.$KV.pending_permissions.s.1
			$JS.API.CONSUMER.DELETE.KV_pending_permissions.outbox
			$SYS.REQ.USER.INFO _NOD.account_info _NOD.stream_info.permission_log _NOD.message_get.permission_log
			_NOD.direct_get.s.1 _NOD.consumer_info.permission_prompts.tg _NOD.watch.x _NOD.unwatch.x
			nod.v1.query.observer.pending nod.v1.query.observer.show nod.v1.query.observer.history
			nod.v1.query.observer.session nod.v1.query.observer.grants nod.v1.query.observer.unsettled
			$SRV.PING $SRV.PING.nod-engine $SRV.INFO.nod-engine $SRV.STATS.nod-engine $SRV.STATS.nod-engine.x`,
		sub: `nod.v1.> nod.v1.*.*.> nod.v1.request.> nod.v1.withdraw.> nod.v1.await.> nod.v1.grant.> nod.v1.gate.> nod.v1.passed.>
			nod.v1.session.> nod.v1.answer.> nod.v1.presence.> nod.v1.register.> nod.v1.shown.> nod.v1.delivery.>
			nod.v1.query.> nod.v1.manage.> nod.v1.view.> nod.v1.view.s.1 nod.v1.decision.> nod.v1.decision.ada.>
			nod.v1.decision.ada.s.1 nod.v1.decision.bob.> nod.v1.decision.bob.s.1 nod.v1.notice.ada.>
			nod.v1.notice.bob.> nod.v1.log.> nod.v1.log.s nod.v1.timer.> nod.v1.due.> nod.v1.prompt.>
			_INBOX.observer.>`,
	},
}

// Of all roles, only the role owner-store has these subjects.
const (
	nobodyPublishes = `nod.v1.due.s.1 nod.v1.request.ada.s nod.v1.request.ada.s.1.2 nod.v1.answer.mallory.s.1
		$JS.API.STREAM.DELETE.permission_prompts $JS.API.STREAM.DELETE.KV_pending_permissions
		$JS.API.STREAM.PURGE.permission_log $JS.API.STREAM.MSG.DELETE.permission_log
		$JS.API.STREAM.SNAPSHOT.permission_log $SYS.REQ.SERVER.PING $JS.API.STREAM.RESTORE.permission_log
		$JS.API.STREAM.LEADER.STEPDOWN.permission_log $JS.API.STREAM.PEER.REMOVE.permission_log
		$JS.API.META.LEADER.STEPDOWN $JS.API.ACCOUNT.PURGE.STORE
		foo`
	nobodySubscribes = `> nod.> *.> $KV.> $KV.pending_permissions.s.1 $JS.> $JS.API.> $JS.ACK.> $SYS.> _NOD.> _R_.>
		$SRV.> $SRV.* $SRV.PING.>
		_INBOX.> _INBOX.* _INBOX.*.* _INBOX.*.> _INBOX.agent.> _INBOX.agent.*.> _INBOX.connector.>`
)

func TestRightsOfEveryRole(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startIn(t, m)
		for id := range rightsTable {
			t.Run(id.String(), func(t *testing.T) { requireRights(t, g.as(id), id) })
		}
		t.Run(asOwnerStore.String(), func(t *testing.T) { requireAllRights(t, g.as(asOwnerStore)) })
	})
}

func requireAllRights(t *testing.T, nc *nats.Conn) {
	t.Helper()
	publishes, subscribes := allSubjects()
	publishes = slices.DeleteFunc(publishes, func(s string) bool { return strings.HasPrefix(s, "$JS.API.STREAM.DELETE") })
	pub, sub := rightsOf(t, nc, mappedFor(asOwnerStore), publishes, subscribes)
	require.Equal(t, publishes, pub)
	require.Equal(t, subscribes, sub)
}

func allSubjects() (publishes, subscribes []string) {
	for _, r := range rightsTable {
		publishes = append(publishes, strings.Fields(r.pub)...)
		subscribes = append(subscribes, strings.Fields(r.sub)...)
	}
	return distinct(append(publishes, strings.Fields(nobodyPublishes)...)), distinct(append(subscribes, strings.Fields(nobodySubscribes)...))
}

// requireRights tries every subject of the table with nc, requires that nc may use exactly the subjects
// of id, and closes nc.
func requireRights(t *testing.T, nc *nats.Conn, id roles.ID) {
	t.Helper()
	publishes, subscribes := allSubjects()
	pub, sub := rightsOf(t, nc, mappedFor(id), publishes, subscribes)
	require.Equal(t, distinct(strings.Fields(rightsTable[id].pub)), pub)
	require.Equal(t, distinct(strings.Fields(rightsTable[id].sub)), sub)
}

func distinct(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
