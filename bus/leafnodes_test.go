package bus_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testports"
)

// anyConnection lets keys connect as every kind of client, including leaf nodes.
var anyConnection = layout{
	config: func(config string) string {
		return strings.ReplaceAll(config, ", allowed_connection_types: ["+strings.Join(roles.ConnectionTypes(), ", ")+"]", "")
	},
	scope: func(s *jwt.UserScope) { s.Template.AllowedConnectionTypes = nil },
}

// No key may connect as a leaf node. A server accepts every acknowledgement from a leaf node, whatever
// rights its key has. If the servers of a cluster accepted leaf nodes, an agent could take prompts or
// acknowledge them before a worker has shown them to a person.
func TestNoKeyConnectsALeafNode(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		start := func(l layout) (g *guarded, address string, acks *nats.Subscription) {
			address = fmt.Sprint("127.0.0.1:", testports.Free(t, 1)[0])
			leafNodes := layout{config: func(config string) string { return fmt.Sprintf("%s\nleafnodes { listen: %q }\n", config, address) }}
			g = startLayout(t, m, l, leafNodes)
			_, acks = g.listen(asOwnerStore, "$JS.ACK.>")
			return g, address, acks
		}
		g, address, acks := start(asShipped)
		for _, id := range everybody() {
			require.Contains(t, g.leafNode(id, address), "Authorization Violation", id)
		}
		requireSilent(t, acks)

		g, address, acks = start(anyConnection)
		require.Contains(t, g.leafNode(asAda, address), "PONG")
		_, err := acks.NextMsg(5 * time.Second)
		require.NoError(t, err, "this attack must succeed if an agent can be a leaf node, or its failure proves nothing")
	})
}

// leafNode connects as a leaf node, acknowledges another connector's prompt, and returns the server's
// reply. It speaks the leaf nodes' protocol itself, without a NATS server of its own.
func (g *guarded) leafNode(id roles.ID, address string) (reply string) {
	g.t.Helper()
	file, err := os.ReadFile(g.keys.Path(id))
	require.NoError(g.t, err)
	pair, err := nkeys.ParseDecoratedNKey(file)
	require.NoError(g.t, err)
	public, err := pair.PublicKey()
	require.NoError(g.t, err)
	return leafNodeAs(g.t, address, func(nonce string) map[string]any {
		signature, err := pair.Sign([]byte(nonce))
		require.NoError(g.t, err)
		login := map[string]any{"sig": base64.RawURLEncoding.EncodeToString(signature)}
		if g.keys.Operator() {
			login["jwt"], err = nkeys.ParseDecoratedJWT(file)
			require.NoError(g.t, err)
		} else {
			login["nkey"] = public
		}
		return login
	})
}

// leafNodeAs is like leafNode, with the login that the function returns for the server's nonce.
func leafNodeAs(t *testing.T, address string, login func(nonce string) map[string]any) (reply string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	lines := bufio.NewReader(conn)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	var info struct {
		Nonce string `json:"nonce"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info))
	hello := map[string]any{"server_id": "leaf", "name": "leaf", "version": "2.15.0"}
	maps.Copy(hello, login(info.Nonce))
	text, err := json.Marshal(hello)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "CONNECT %s\r\nLMSG $JS.ACK.permission_prompts.tg.1.1.1.1.1 4\r\n+ACK\r\nPING\r\n", text)
	require.NoError(t, err)
	for !strings.HasPrefix(line, "PONG") && !strings.HasPrefix(line, "-ERR") {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	return line
}
