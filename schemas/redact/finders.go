package redact

import (
	"regexp"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// finder replaces one kind of secret. In each match of its expression, the secret is the group named
// "secret".
type finder struct {
	// hints are lower-case texts. If a text contains none of them, the expression has no match in it. A
	// finder without hints has no match in a text without a long word (see hasLongWord).
	hints []string
	expr  lazyregexp.Regexp
	// keep returns true for a match that is no secret. If keep is nil, every match is a secret. The
	// argument literal means that the shell expands no variables in the match.
	keep func(secret string, literal bool) bool
}

// secretName matches the names of variables, fields, flags and parameters whose values are secrets.
const secretName = `(?:[\w.-]*(?:passw(?:or)?d|passphrase|passcode|secret|token|api[_-]?key|accesskey|accountkey|privatekey|signingkey|credential|authorization|cookie|bearer|conn(?:ection)?[_-]?str(?:ing)?|webhook[_-]?url)[\w.-]*|(?:[\w.-]*[_.-])?(?:pass|otp|pin|dsn)|[\w.-]+[_.-](?:key|pwd|auth|pat|salt|sig|signature))`

// nameHints are the hints for secretName.
var nameHints = []string{"pass", "secret", "token", "key", "credential", "auth", "cookie", "bearer", "conn", "webhook", "otp", "pin", "dsn", "pwd", "pat", "salt", "sig"}

// value matches a quoted text, or one word of a shell line.
const value = "(?:\"(?P<secret>(?:[^\"\\\\]|\\\\.)*)\"|'(?P<secret>[^']*)'|\\\\\"(?P<secret>[^\"]*?)\\\\\"|(?P<secret>(?:\\$\\{\\w+\\}|[^\\s\"'`;&|<>(),}\\\\])+))"

// writes matches the name of a file to which a redirection, tee or a patch writes.
var writes = lazyregexp.New(`(?m)(?:>{1,2}\|?\s*|\btee\s+(?:-\S+\s+)*|^\*\*\* (?:Add|Update|Delete) File: |^\+\+\+ (?:b/)?)("[^"\n]+"|'[^'\n]+'|[^\s;&|<>()"']+)`)

var privateKeys = finder{
	hints: []string{"private key"},
	expr:  lazyregexp.New(`(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$))`),
}

// finders are applied one after another. A finder gets the text with the marks of the earlier
// finders.
var finders = []finder{
	{expr: lazyregexp.New(`(?:^|[^A-Za-z0-9])(?:bot)?(?P<secret>` + strings.Join(tokens, "|") + `)`)},
	{hints: []string{"slack.com", "discord", "webhook.office.com"},
		expr: lazyregexp.New(`(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/)(?P<secret>[^\s"'<>]+)`), keep: isKnown},
	{hints: []string{"authorization"},
		expr: lazyregexp.New(`(?i)authorization(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?(?P<secret>[^\r\n"'\\]+)`), keep: isKnown},
	{hints: []string{"cookie"},
		expr: lazyregexp.New(`(?i)cookie(?:\\?["'])?\s*:\s*(?:\\?["'])?(?P<secret>[^\r\n"'\\]+)`), keep: isKnown},
	{hints: []string{"bearer", "basic"},
		expr: lazyregexp.New(`(?i)\b(?:bearer|basic)\s+(?P<secret>[\w.~+/=-]{8,})`), keep: isKnown},
	{hints: nameHints,
		expr: lazyregexp.New(`(?i)(?:^|[^\w.-])` + secretName + `(?:\\?["'])?\s*(?:=>|:=|[=:])\s*` + value), keep: isKnown},
	{hints: nameHints,
		expr: lazyregexp.New(`(?i)(?:^|[\s"'])--?` + secretName + `["']?\s+` + value), keep: isKnownArgument},
	{hints: []string{"-u", "--user", "--proxy-user"},
		expr: lazyregexp.New(`(?:^|\s)(?:-u|-U|--user|--proxy-user)(?:\s*|=)["']?(?P<secret>[^\s:"']+:[^\s"']+)`), keep: isUserIDs},
	{hints: []string{"mysql", "mariadb", "sshpass", "mongo", "7z", "smbclient", "ldap", " login"},
		expr: lazyregexp.New(`\b(?:mysql\w*|mariadb[\w-]*|sshpass|mongo\w*|7z\w*|smbclient|ldap\w+|(?:docker|podman|helm registry|skopeo|oras) login)\b[^\n;&|]*?\s-[pw]\s*` + value), keep: isKnownArgument},
	{hints: []string{"redis-cli", "zip"},
		expr: lazyregexp.New(`\b(?:redis-cli\b[^\n;&|]*?\s-a|(?:un)?zip\b[^\n;&|]*?\s-P)\s*` + value), keep: isKnownArgument},
	{hints: []string{"configure set", "config", "secret set"},
		expr: lazyregexp.New(`(?i)\b(?:configure set|config set|config(?:\s+--\w+)*)\s+(?:[\w.:/-]*[.:/])?` + secretName + `\s+` + value), keep: isKnownArgument},
	{hints: []string{"="},
		expr: lazyregexp.New(`(?:^|[\s;&|({"'])[A-Z_][A-Z0-9_]*=` + value), keep: isNotOpaque},
}

// tokens are expressions for the tokens of well-known services.
var tokens = []string{
	`gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_\w{20,}`, `gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent)-[\w-]{16,}`, // tokens of hosts of source code
	`(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}`, `AIza[\w-]{30,}`, `ya29\.[\w.-]{20,}`, `GOCSPX-[\w-]{20,}`, // tokens of clouds
	`xox[abeoprs]-[\w-]{10,}`, `xapp-[\w-]{10,}`, `\d{8,10}:[\w-]{35}`, `[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}`, // tokens of chat services
	`sk-[\w-]{20,}`, `hf_[A-Za-z0-9]{20,}`, `r8_[A-Za-z0-9]{20,}`, `gsk_[A-Za-z0-9]{20,}`, `xai-[\w-]{20,}`, `pplx-[\w-]{20,}`, // tokens of providers of language models
	`[sr]k_(?:live|test)_[A-Za-z0-9]{10,}`, `whsec_[\w+/=-]{16,}`, `sq0[a-z]{3}-[\w-]{20,}`, // tokens of payment services and of signed webhooks
	`npm_[A-Za-z0-9]{30,}`, `pypi-[\w-]{16,}`, `dckr_(?:pat|oat)_[\w-]{16,}`, `rubygems_[a-f0-9]{20,}`, `oy2[a-z0-9]{40,}`, // tokens of package registries
	`do[opr]_v1_[a-f0-9]{32,}`, `fo1_[\w-]{20,}`, `HRKU-[\w-]{20,}`, `dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}`, `hv[sbr]\.[\w-]{20,}`, `[\w-]{14}\.atlasv1\.[\w-]{40,}`, `pul-[a-f0-9]{32,}`, `sbp_[a-f0-9]{20,}`, `pscale_\w+_[\w.-]{20,}`, // tokens of web hosts
	`SG\.[\w-]{16,}\.[\w-]{16,}`, `(?:SK|AC)[0-9a-f]{32}`, `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}`, `AT[AC]TT3[\w=-]{20,}`, `lin_(?:api|oauth)_\w{20,}`, `(?:secret|ntn)_[A-Za-z0-9]{30,}`, `PMAK-[\w-]{20,}`, `sntry[su]_[\w=+/-]{20,}`, `NRAK-[A-Z0-9]{20,}`, `gl(?:sa|c)_[\w+/=]{20,}`, `dapi[a-f0-9]{32}`, `figd_[\w-]{20,}`, `tskey-[\w-]{10,}`, // tokens of other services
	`eyJ[\w-]{12,}(?:\.[\w-]*){0,4}`,                                                        // JSON Web Tokens, and nod's invitations
	`S[UAOCNX][A-Z2-7]{56}`, `AGE-SECRET-KEY-1[A-Z0-9]{20,}`, `[xyztuv]prv[A-Za-z0-9]{50,}`, // keys of NATS, age and wallets
}

func (f *finder) replace(s string, n *int) string {
	if !f.mayMatch(s) {
		return s
	}
	expr := f.expr()
	found := expr.FindAllStringSubmatchIndex(s, -1)
	var b strings.Builder
	end := 0
	for _, m := range found {
		from, to := secretGroup(expr, m)
		if from == to || f.keep != nil && f.keep(s[from:to], from > 0 && s[from-1] == '\'') {
			continue
		}
		b.WriteString(s[end:from])
		b.WriteString(Mark)
		end = to
		*n++
	}
	if end == 0 {
		return s
	}
	return b.String() + s[end:]
}

func (f *finder) mayMatch(s string) bool {
	if len(f.hints) == 0 {
		return hasLongWord(s)
	}
	low := strings.ToLower(s)
	for _, h := range f.hints {
		if strings.Contains(low, h) {
			return true
		}
	}
	return false
}

// hasLongWord is a fast check. If it returns false, the text contains none of the tokens, because each
// token has at least 14 such characters in a row.
func hasLongWord(s string) bool {
	run := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '+' && c <= ':' || c == '_' || c == '=' { // the range from '+' to ':' has the digits and + , - . / :
			if run++; run >= 14 {
				return true
			}
			continue
		}
		run = 0
	}
	return false
}

// secretGroup returns the position of the group named "secret" in a match. Several groups may have
// this name, but only one of them has matched.
func secretGroup(expr *regexp.Regexp, m []int) (from, to int) {
	for i, name := range expr.SubexpNames() {
		if name == "secret" && m[2*i] >= 0 {
			return m[2*i], m[2*i+1]
		}
	}
	return 0, 0
}
