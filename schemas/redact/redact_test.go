package redact_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas/redact"
)

// secretFiles is a Redactor to which .env, *.pem and the files in .ssh are secret.
var secretFiles = redact.Redactor{SecretFile: func(p string) bool {
	return path.Base(p) == ".env" || path.Ext(p) == ".pem" || strings.Contains(p, ".ssh/")
}}

// repeat makes a token of n characters. Scanners that look for secrets in repositories do not take
// such a token for a real one.
func repeat(s string, n int) string { return strings.Repeat(s, n)[:n] }

func TestSecretsAreReplaced(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
	for text, want := range map[string]string{
		// tokens, known by their shape
		"gh auth login --with-token <<< ghp_" + repeat("a1B2", 36):                         "gh auth login --with-token <<< [redacted]",
		"x github_pat_" + repeat("a1B2", 40) + " y":                                        "x [redacted] y",
		"glpat-" + repeat("a1B2", 20):                                                      "[redacted]",
		"key AKIA" + repeat("A1B2", 16):                                                    "key [redacted]",
		"xoxb-" + repeat("12-", 30):                                                        "[redacted]",
		"sk-ant-api03-" + repeat("a1B2", 40):                                               "[redacted]",
		"sk_live_" + repeat("a1B2", 24):                                                    "[redacted]",
		"npm_" + repeat("a1B2", 36):                                                        "[redacted]",
		"curl api.telegram.org/bot123456789:" + repeat("a1B2-", 35) + "/getMe":             "curl api.telegram.org/bot[redacted]/getMe",
		"echo " + jwt + " | cut -d. -f2":                                                   "echo [redacted] | cut -d. -f2",
		"nk SU" + repeat("AB27", 56):                                                       "nk [redacted]",
		"nod join eyJ" + repeat("a1B2", 200):                                               "nod join [redacted]",
		"curl https://hooks.slack.com/services/T0/B0/abc -d x":                             "curl https://hooks.slack.com/services/[redacted] -d x",
		"cat <<E\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nE": "cat <<E\n[redacted]\nE",
		"-----BEGIN OPENSSH PRIVATE KEY-----\ncut off":                                     "[redacted]",

		// users in addresses
		"git clone https://ann:hunter2@example.com/x.git":         "git clone https://[redacted]@example.com/x.git",
		"git clone https://ghtoken@example.com/x":                 "git clone https://[redacted]@example.com/x",
		"psql postgres://ann:p@ss/word@db:5432/x?sslmode=disable": "psql postgres://[redacted]@db:5432/x?sslmode=disable",
		"curl 'https://x.example/?a=1&api_key=abc&b=2'":           "curl 'https://x.example/?a=1&api_key=[redacted]&b=2'",

		// variables, flags, headers
		"DB_PASSWORD=hunter2 make":                              "DB_PASSWORD=[redacted] make",
		`export API_KEY="a b" X=1`:                              `export API_KEY="[redacted]" X=1`,
		"FOO=" + repeat("a1B2", 24) + " run":                    "FOO=[redacted] run",
		"docker run -e MYSQL_PASS=x img":                        "docker run -e MYSQL_PASS=[redacted] img",
		"PASS='$ecret' run":                                     "PASS='[redacted]' run",
		"tool --password hunter2 --verbose":                     "tool --password [redacted] --verbose",
		"tool --auth-token=abc":                                 "tool --auth-token=[redacted]",
		"curl -u ann:hunter2 x":                                 "curl -u [redacted] x",
		"mysql -uroot -phunter2 db":                             "mysql -uroot -p[redacted] db",
		"docker login -u ann -p hunter2 reg":                    "docker login -u ann -p [redacted] reg",
		"aws configure set aws_secret_access_key abc":           "aws configure set aws_secret_access_key [redacted]",
		`curl -H "Authorization: Bearer abc.def"`:               `curl -H "Authorization: [redacted]"`,
		`curl -H 'X-Api-Key: abc' x`:                            `curl -H 'X-Api-Key: [redacted]' x`,
		`curl -H 'Cookie: a=b; c=d' x`:                          `curl -H 'Cookie: [redacted]' x`,
		`echo '{"client_secret": "abc", "n": 1}'`:               `echo '{"client_secret": "[redacted]", "n": 1}'`,
		"password: hunter2\nuser: ann":                          "password: [redacted]\nuser: ann",
		`curl -d "{\"password\": \"abc\"}" x`:                   `curl -d "{\"password\": \"[redacted]\"}" x`,
		"Bash(curl -H 'Authorization: Basic YW5uOmh1bnRlcjI=')": "Bash(curl -H 'Authorization: [redacted]')",
		"use the header Bearer abcdefgh12345678 for it":         "use the header Bearer [redacted] for it",
		"ssh://ann:hunter2@example.com":                         "ssh://[redacted]@example.com",

		// secret files
		"echo hunter2 > .env":                          "[redacted] (it writes .env)",
		"cat <<E >>'app/.env'\nhunter2\nE":             "[redacted] (it writes app/.env)",
		"pbpaste | tee -a ~/.ssh/known":                "[redacted] (it writes ~/.ssh/known)",
		"*** Begin Patch\n*** Update File: .env\n+x\n": "[redacted] (it writes .env)",
	} {
		got, n := secretFiles.Text(text)
		require.Equal(t, want, got)
		require.Positive(t, n, text)
		again, n := secretFiles.Text(got)
		require.Equal(t, got, again, "a second pass changes nothing")
		require.Zero(t, n, got)
	}
}

func TestTextsWithoutSecretsStay(t *testing.T) {
	for _, text := range []string{
		"", "ls", "default", "allow Bash(go test:*)", "deny Read(~/.ssh/**)", "git push origin main",
		"NODE_ENV=production npm test", "GOFLAGS=-mod=mod go build ./...", "TARGET=x86_64-unknown-linux-gnu make",
		`curl -H "Authorization: Bearer $TOKEN" https://example.com/x`, `DB_PASSWORD="$DB_PASSWORD" make`, "tool --token ${TOKEN} -v",
		"ssh://git@github.com/x/y", "git@github.com:x/y.git", "npm i https://registry.npmjs.org:443/@scope/pkg", "https://example.com/a@b",
		"docker run -u 1000:1000 img", "mkdir -p a/b", "cat .env", "ls > /dev/null 2>&1", "grep -rn password src", "git log 3f2a9c1d4e5b6a7988aabbccddeeff0011223344",
		"frozen by Ann: too many deletions", "cat ~/.ssh/config", "sha256:2ef8853106f4d107e0cb35bd52b824fcd3814912630e509ca290feb0fd91bd75",
	} {
		got, n := secretFiles.Text(text)
		require.Equal(t, text, got)
		require.Zero(t, n, text)
	}
}

func TestSecretsInJSONAreReplaced(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"PGPASSWORD=x psql","n":1.50}`:                           `{"command":"PGPASSWORD=[redacted] psql","n":1.50}`,
		`{"z":1,"password":"hunter2","a":[true,null,"sk_live_1234567890a"]}`: `{"z":1,"password":"[redacted]","a":[true,null,"[redacted]"]}`,
		`{"credentials":{"user":"ann","pin":1234,"list":["x"]}}`:             `{"credentials":{"user":"[redacted]","pin":"[redacted]","list":["[redacted]"]}}`,
		`{"content":"A=1","file_path":"/p/.env","cwd":"/p"}`:                 `{"content":"[redacted]","file_path":"/p/.env","cwd":"/p"}`,
		`{"file_path":"k.pem","edits":[{"old":"a","new":""}]}`:               `{"file_path":"k.pem","edits":[{"old":"[redacted]","new":""}]}`,
		`{"action_details":{"path":".env","text":"x"},"title":"write"}`:      `{"action_details":{"path":".env","text":"[redacted]"},"title":"write"}`,
		`{"AKIA` + repeat("A1B2", 16) + `":1}`:                               `{"[redacted]":1}`,
	} {
		got, n, err := secretFiles.JSON(json.RawMessage(in))
		require.NoError(t, err, in)
		require.Equal(t, want, string(got))
		require.Positive(t, n)
	}
	same := json.RawMessage(`{ "command" : "ls" , "file_path":"main.go","content":"x","session_id":"s-1" }`)
	got, n, err := secretFiles.JSON(same)
	require.NoError(t, err)
	require.Equal(t, string(same), string(got), "the bytes stay without a secret")
	require.Zero(t, n)
	for _, bad := range []string{"", "{", `{"a":1}{}`, `{"a":}`, `[1,`} {
		_, _, err := secretFiles.JSON(json.RawMessage(bad))
		require.Error(t, err, bad)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"password":"x","a":["ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaa"],"file_path":".env"}`), "hunter2")
	f.Add([]byte(`{"a":"https://u:p@h/","b":{"token":1}}`), "A=\"b")
	f.Fuzz(func(t *testing.T, data []byte, secret string) {
		got, n, err := secretFiles.JSON(data)
		if err != nil {
			require.False(t, json.Valid(data) && len(data) > 0)
		} else {
			require.True(t, json.Valid(got))
			require.Equal(t, n == 0, string(got) == string(data))
		}
		quoted, err := json.Marshal(map[string]string{"password": secret})
		require.NoError(t, err)
		got, _, err = secretFiles.JSON(quoted)
		require.NoError(t, err)
		if len(secret) > len(redact.Mark) && !strings.ContainsAny(secret, "$%{") && !strings.Contains(secret, redact.Mark) && !strings.HasPrefix(secret, "process.") && !strings.HasPrefix(secret, "os.") {
			require.NotContains(t, string(got), secret)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{
		"rule":    "allow Bash(go test:*)",
		"command": "cd /home/ann/app && go test -run 'TestX' ./... 2>&1 | tail -20",
		"long":    strings.Repeat("func main() { fmt.Println(token, key) }\n", 2000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				secretFiles.Text(text)
			}
		})
	}
}
