// Package secrets recognises files by their names: secrets, settings of programs, and nod's own
// files.
package secrets

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// secretNames are files and directories with secrets, or with settings that decide which programs run. A
// name matches any segment of a path. A name with / matches consecutive segments, and a name with a
// leading / matches from the root. Every path below a match also matches. Case does not matter, because
// macOS and Windows ignore the case of file names.
var secretNames = []string{
	// key files
	".ssh", ".gnupg", "id_rsa", "id_rsa*", "id_dsa", "id_dsa*", "id_ecdsa", "id_ecdsa*", "id_ed25519", "id_ed25519*", "secring.gpg",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.keytab", "*.kdb", "*.kdbx", "*_rsa", "*_ed25519",
	"/etc/ssl/private", "ssh_host_*_key", ".password-store", ".age", ".config/age", ".config/sops", "wallet.dat", ".electrum", ".bitcoin",
	"/etc/wireguard", "/etc/ipsec.secrets", "/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets", "/etc/openvpn", "/etc/networkmanager/system-connections", "/tmp/krb5cc_*",
	// credential stores
	".env", ".env*", "*.env", ".envrc", ".env.local", ".env.bak", ".env.dev", ".env.development", ".env.development.local", ".env.prod",
	".env.production", ".env.production.local", ".env.staging", ".env.test", ".env.test.local", ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials",
	".config/git/credentials", ".git/config", ".gitconfig", ".htpasswd", ".vault-token", ".dockercfg", ".docker/config.json", ".cargo/credentials",
	".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".nuget/nuget.config",
	".composer/auth.json", ".terraformrc", ".terraform.d", "*.tfstate", "*.tfvars", "rclone.conf", ".s3cfg", ".boto",
	".databrickscfg", ".snowflake", ".dev.vars", ".dev.vars.*", "*.tfvars.json", "*.tfstate.backup", "*-firebase-adminsdk-*.json",
	".config/containers/auth.json", ".config/composer/auth.json", ".m2/settings-security.xml", ".nuget/nuget/nuget.config", ".wgetrc", ".curlrc", ".subversion/auth",
	".authinfo", ".authinfo.gpg", ".msmtprc", ".fetchmailrc", ".mylogin.cnf", ".sentryclirc", ".smbcredentials", ".config/pip", ".pip/pip.conf", ".bundle/config", ".config/git/config",
	".supabase", ".local/share/com.vercel.cli", ".config/netlify", ".config/openai", ".config/anthropic", ".pulumi", ".tsh", ".vnc/passwd", ".xauthority", ".android/adbkey", ".vault_pass*",
	".kaggle", ".huggingface", ".cache/huggingface/token", ".filezilla", ".config/filezilla", ".ngrok2", ".config/ngrok", ".config/stripe", ".lastpass",
	".config/keepassxc", ".config/1password", ".config/bitwarden", "application support/bitwarden", ".config/signal", "application support/signal", "credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json",
	"serviceaccount*.json", "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", ".secrets", ".*_history",
	"fish_history", "psreadline/consolehost_history.txt", ".zhistory", ".histfile", ".zsh_sessions", ".local/share/atuin", ".config/nushell/history.txt", ".lesshst", ".viminfo", "/etc/master.passwd", "/etc/security/opasswd", "/etc/shadow*", "/etc/gshadow*", "/etc/sudoers", "/etc/sudoers.d", "/run/secrets", "/var/run/secrets",
	"/run/credentials", "library/keychains", ".local/share/keyrings", ".local/share/kwalletd",
	"*.ovpn", "*.kirbi", "*.ccache", "*.psafe3", "*.agilekeychain", "*.keychain", "*.keychain-db", "*.pkcs12", "*_dsa", "*_ecdsa", "*.key.*", "*.pem.*", "*.p12.*", "*.pfx.*", "*.jks.*", "*.keystore.*", "*.kdbx.*", "*.ppk.*", "*.ovpn.*", "*.tfstate.*", "*.tfvars.*",
	// files whose names tell the kind of their content
	"*.secret", "*.secrets", "*.token", "*.credentials", "*.passwd", "*.password", "*.passwords", "credentials", "credentials.*", "*-credentials.json", "*_credentials.json", "*-credentials.yml", "*_credentials.yml", "*-credentials.yaml", "*_credentials.yaml", "*credentials*.ini", "*credentials*.xml",
	"*credentials*.csv", "*secrets*.json", "*secrets*.yml", "*secrets*.yaml", "*secrets*.toml", "*-secret.json", "*-secret.yml", "*-secret.yaml", "secret.json", "secret.yml", "secret.yaml", "secret.toml", "*passwords*.csv", "*passwords*.json", "*oauth_creds*.json", "*accesstokens*.json", "token.json",
	"tokens.json", "*_token.json", "*-token.json", "auth.json", "cookies.sqlite", "logins.json", "key4.db", "login data", "wp-config.php", "wp-config-*.php", "wp-config.php.*", "settings.local.php", "keystore.properties", "key.properties", "vault-password*", ".vault-password*", ".*token", ".*token.*", ".*secret",
	".*secrets", ".*secret.*", ".*secrets.*", ".*credentials", ".*credentials.*", ".*passwd", ".*password", ".*password.*", ".*_key", ".*-key", ".modal.toml", ".pgpass.*", ".netrc.*", ".npmrc.*", ".pypirc.*", ".my.cnf.*", ".git-credentials*", ".gitconfig.*",
	"/etc/letsencrypt", "/etc/pki/tls/private", "/etc/docker/key.json", "/etc/mysql/debian.cnf", "/etc/postfix/sasl_passwd*", "/etc/samba/smbpasswd", "/etc/wpa_supplicant", "/etc/krb5.keytab", "/etc/crypttab", "/etc/openldap", "/var/lib/jenkins", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet",
	"/var/spool/cron", "/var/spool/mail", "/var/mail", "/var/backups",
	// cloud profiles
	".aws", ".azure", ".minikube", "/etc/kubernetes", "/etc/rancher", ".config/linode-cli", ".gcloud", ".config/gcloud", ".kube", "kubeconfig", "*.kubeconfig", ".oci", ".cloudflared", ".config/hcloud", ".config/scw", ".config/gh", ".config/hub", ".config/glab-cli",
	".config/doctl", ".config/op", ".config/rclone", ".fly", ".heroku", ".wrangler", ".config/configstore", ".config/heroku",
	".config/github-copilot", "application support/gcloud",
	// browser profiles
	".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/bravesoftware", ".config/microsoft-edge*",
	"application support/google/chrome*", "application support/firefox", "application support/bravesoftware",
	"application support/microsoft edge*", "application support/arc", "library/safari", "library/cookies",
	"appdata/local/google/chrome", "appdata/roaming/mozilla", "appdata/local/microsoft/edge",
	// files that show other programs' secrets, or open connections
	"/proc", "/dev", "/inet", "/inet4", "/inet6",
}

// agentNames are agents' settings, hooks and logins. They also count as secrets.
var agentNames = []string{
	".claude.json", ".claude/settings*.json", ".claude/.credentials.json", ".claude/hooks", ".mcp.json", ".codex/auth.json",
	".codex/config.toml", ".codex/hooks.json", ".codex/hooks", ".codex/rules", ".gemini/settings.json",
	".gemini/oauth_creds.json", ".qwen/settings.json", ".copilot/hooks", ".copilot/config.json", ".copilot/mcp-config.json",
	".github/hooks", ".config/opencode", ".local/share/opencode/auth.json", "opencode.json", "opencode.jsonc", ".cursor/mcp.json",
	".cursor/hooks.json", ".cursor/cli.json", ".augment/settings.json", ".augment/session.json", ".continue/config.json", ".continue/config.yaml",
	".codeium/windsurf/mcp_config.json", ".roo/mcp.json", ".kiro/settings", ".amazonq/mcp.json", ".vscode/mcp.json", ".aider.conf.yml", ".config/goose",
	".factory/hooks.json", ".factory/hooks", ".factory/settings*.json", ".factory/mcp.json", ".factory/auth.*",
	".pi/agent/auth.json", ".pi/agent/models.json", ".pi/agent/settings.json", ".pi/agent/extensions", ".pi/settings.json", ".pi/extensions",
}

// instructions are files that agents, editors, shells, version control and build servers obey. They
// are not secrets.
var instructions = []string{
	"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roo", ".roomodes", ".kiro", ".amazonq", ".continue", ".augment", ".opencode", ".junie", ".windsurf", ".trae",
	".fleet", ".run", ".devcontainer.json", "*.sublime-project", ".autoenv", ".autoenv.zsh",
	".github/copilot-instructions.md", ".github/instructions", ".github/prompts", ".github/agents",
	".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".drone.yml", ".buildkite", ".woodpecker", ".woodpecker.yml", ".forgejo", ".gitea", "appveyor.yml",
	".husky", ".lefthook", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", ".overcommit.yml", ".simple-git-hooks.json", ".simple-git-hooks.js", ".watchmanconfig",
	".gitmodules", ".gitattributes", ".exrc", ".nvim.lua", ".nvimrc", ".vimrc", ".dir-locals.el", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv", ".zprofile", ".zlogin", ".bash_login", ".bash_logout", ".inputrc", ".tmux.conf", ".gdbinit", ".lldbinit",
}

// ownNames are the directories of nod's own data, settings and keys.
var ownNames = []string{
	".nod", ".local/share/nod", ".config/nod", ".local/state/nod", "application support/nod", "appdata/local/nod", "appdata/roaming/nod",
}

// openNames are names of files that look like secrets but are meant to be read.
var openNames = []string{
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "example.env", "sample.env", "template.env",
	"id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub",
	"/dev/null", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime",
}

// sourceExtensions are extensions of source code and of other text that people read.
var sourceExtensions = map[string]bool{
	"c": true, "cc": true, "cpp": true, "cs": true, "css": true, "dart": true, "fish": true, "go": true, "h": true, "hpp": true, "html": true, "java": true,
	"js": true, "json": true, "jsx": true, "kt": true, "lock": true, "log": true, "lua": true, "md": true, "mdx": true, "mjs": true, "php": true, "pl": true,
	"proto": true, "py": true, "rb": true, "rs": true, "scala": true, "scss": true, "sh": true, "sql": true, "svelte": true, "swift": true, "tf": true,
	"toml": true, "ts": true, "tsx": true, "txt": true, "vue": true, "xml": true, "yaml": true, "yml": true, "zig": true,
}

// SourceExtension reports whether an extension is one of source code or similar text.
func SourceExtension(ext string) bool { return sourceExtensions[ext] }

// sourceTypes are file types of ripgrep whose hidden files contain no secrets. With the flag -t,
// ripgrep also searches the hidden files of a type.
var sourceTypes = func() map[string]bool {
	types := map[string]bool{}
	for name := range strings.FieldsSeq("asm c clojure cpp cs csharp css cython dart elixir elm erlang fortran fsharp go graphql h haskell html java js julia kotlin less lua markdown md ml nim objc objcpp ocaml php proto protobuf py python r rst ruby rust sass scala svelte swift tex ts typescript vue zig") {
		types[name] = true
	}
	return types
}()

// SourceType reports whether a search of the hidden files of this type shows no secrets.
func SourceType(name string) bool { return sourceTypes[name] }

// typesOf lists, by extension, the source types that include files with this extension. No source
// type includes a file with an extension of dataExtensions.
var typesOf = map[string][]string{
	"": {}, ".go": {"go"}, ".php": {"php"}, ".py": {"py", "python"}, ".rs": {"rust"}, ".rb": {"ruby"}, ".properties": {"java"}, ".java": {"java"},
	".ts": {"ts", "typescript"}, ".tsx": {"ts", "typescript"}, ".js": {"js"}, ".md": {"md", "markdown"}, ".swift": {"swift"}, ".zig": {"zig"},
}

var dataExtensions = strings.Fields(".pem .key .p12 .pfx .p8 .ppk .jks .keystore .keytab .kdb .kdbx .env .json .yml .yaml .toml .ini .csv .conf .tfstate .tfvars .ovpn .secret .secrets .token .credentials .passwd .password .passwords .db .dat")

// DataExtension reports whether files with this extension, such as .json, often hold secrets.
func DataExtension(ext string) bool { return slices.Contains(dataExtensions, ext) }

// TypeMayInclude reports whether a search with the flag -t may show a file. The argument kind is the file
// type of this flag, and base is the file's name.
func TypeMayInclude(kind, base string) bool {
	ext := strings.ToLower(path.Ext(base))
	if types, ok := typesOf[ext]; ok && sourceTypes[kind] {
		return slices.Contains(types, kind)
	}
	return !sourceTypes[kind] || !slices.Contains(dataExtensions, ext)
}

// SourceGlob reports whether the last segment of a pattern is *.EXT, and EXT is an extension of
// source code or similar text.
func SourceGlob(p string) bool {
	base := p[strings.LastIndexByte(p, '/')+1:]
	return strings.HasPrefix(base, "*.") && sourceExtensions[base[2:]]
}

// Names are the compiled names of secrets and of nod's own files. They are immutable and safe for
// concurrent use.
type Names struct {
	secrets  *pathname.Names
	own      *pathname.Names
	guarded  bool // own also has paths that the caller protects
	readable map[string]bool
}

// Compile compiles the known names. The guarded paths, and all paths below them, count as nod's
// own. Guarded paths must be full paths in lower case.
func Compile(guarded ...string) *Names {
	n := &Names{
		secrets: pathname.Compile(secretNames, agentNames, ownNames, guarded), own: pathname.Compile(ownNames, guarded),
		guarded: len(guarded) > 0, readable: map[string]bool{},
	}
	for _, name := range openNames {
		n.readable[name] = true
	}
	return n
}

// sharedSettings are the names in agentNames that projects track for all their users. These files
// contain no logins.
var sharedSettings = []string{
	".claude/settings*.json", ".claude/hooks", ".codex/config.toml", ".codex/hooks.json", ".codex/hooks", ".codex/rules", ".gemini/settings.json", ".qwen/settings.json",
	".copilot/hooks", ".github/hooks", "opencode.json", "opencode.jsonc", ".cursor/hooks.json", ".cursor/cli.json", ".kiro/settings", ".pi/settings.json", ".pi/extensions",
	".factory/hooks.json", ".factory/hooks", ".factory/settings*.json",
}

// CompileTracked compiles the names of files that are secrets even if a repository tracks them.
// These are all secret names except nod's own files and sharedSettings.
func CompileTracked() *Names {
	logins := slices.DeleteFunc(slices.Clone(agentNames), func(name string) bool { return slices.Contains(sharedSettings, name) })
	n := Compile()
	n.secrets = pathname.Compile(secretNames, logins)
	return n
}

// Listed reports whether the file name p, a full path without patterns, is on the list of
// secrets.
//
// Files in /dev/shm are ordinary files, although /dev is on the list.
func (n *Names) Listed(p string) bool {
	return n.listed(literal.Replace(strings.TrimPrefix(p, "/dev/shm")), false)
}

// MayBegin reports whether a listed name may begin with the last segments of dir and continue below dir.
// For example, .docker/config.json does so for the directory .docker. dir is a full path without patterns.
func (n *Names) MayBegin(dir string) bool {
	return n.secrets.MayLieBelow(literal.Replace(dir), &pathname.Location{})
}

// literal replaces the special characters of patterns. No listed name contains such a character.
var literal = strings.NewReplacer("*", "_", "?", "_", "[", "_", "]", "_", `\`, "_")

// Protected are files of a project that decide what other programs run. They are settings of
// agents, editors and shells, hooks, instructions of build servers, and nod's own files. Contained
// commands cannot change these files. A Protected is immutable and safe for concurrent use.
type Protected struct{ names *pathname.Names }

// CompileProtected compiles the names of the Protected files.
func CompileProtected() *Protected {
	list := slices.DeleteFunc(pathname.NeverRememberedNames(), func(name string) bool { return name == "head" }) // head is left out, because ordinary files may have this name, and package contain itself finds repositories
	return &Protected{pathname.Compile(list, agentNames, instructions, ownNames)}
}

// Has reports whether the path rel, relative to the project and without patterns, is protected.
func (p *Protected) Has(rel string) bool { return p.names.Has(literal.Replace(rel), false) }

// MayLeadFrom reports whether a relative path may mean a secret because of the directory in which it
// begins, which is one of the location's directories. The path alone need not look like a secret.
func (n *Names) MayLeadFrom(loc *pathname.Location) bool {
	return n.secrets.MayLeadFrom(loc.Dirs) || slices.ContainsFunc(loc.Dirs, func(d string) bool { return !loc.InTree(d) })
}

// MayBe reports whether the text t may mean a secret, one of nod's own files, or a hidden file outside the
// project. If the argument dots is true, wildcards in t also match hidden names.
//
// A backslash in t has two meanings, and MayBe tries both. On Windows it is a separator. Elsewhere
// it makes the next character of a pattern literal.
func (n *Names) MayBe(t string, loc *pathname.Location, dots bool) bool {
	return n.MayBeListed(t, loc, dots) || n.HiddenOutside(t, loc)
}

// MayBeListed works like MayBe, but hidden files outside the project do not count.
func (n *Names) MayBeListed(t string, loc *pathname.Location, dots bool) bool {
	if n.listed(t, dots) || slices.ContainsFunc(loc.Follow(t), func(at string) bool { return at == pathname.Unfollowed || n.listed(at, false) }) {
		return true
	}
	if strings.IndexByte(t, '\\') >= 0 && n.MayBeListed(strings.ReplaceAll(t, `\`, ""), loc, dots) {
		return true
	}
	if pathname.IsAbs(pathname.Slashes(t)) || !loc.LeadsToSecret && !strings.Contains(t, "..") && !strings.HasPrefix(t, "~") {
		return false
	}
	for _, r := range loc.Resolve(t) {
		if n.listed(r, dots) {
			return true
		}
	}
	return false
}

// MayLieBelow reports whether t is a home directory or contains one, or whether listed secrets may
// exist below t, as they may below ~/.config.
func (n *Names) MayLieBelow(t string, loc *pathname.Location) bool {
	if loc.AboveHome(t) || n.secrets.MayLieBelow(t, loc) || n.HiddenOutside(t, loc) {
		return true
	}
	return slices.ContainsFunc(loc.Resolve(t), func(full string) bool { return n.secrets.MayLieBelow(full, loc) })
}

// workflows matches a pattern for GitHub's workflows, such as .github/workflows/*.yml.
var workflows = lazyregexp.New(`^(?:[\w./-]*/)?\.github/workflows/(?:\*|[A-Za-z0-9_-])+\.ya?ml$`)

func (n *Names) listed(t string, dots bool) bool {
	if !pathname.IsGlob(t) {
		low := strings.ToLower(pathname.Slashes(t))
		if n.readable[low[strings.LastIndexByte(low, '/')+1:]] || n.readable[low] {
			dir := strings.LastIndexByte(low, '/')
			return dir > 0 && low != "/dev/null" && !strings.HasPrefix(low, "/proc/") && n.secrets.Has(low[:dir], dots)
		}
	}
	if strings.Contains(t, ".github/workflows/") && workflows.MatchString(t) { // a workflow is no secret, even if its name is secrets.yml
		return n.secrets.Has(t[:strings.LastIndexByte(t, '/')], dots)
	}
	return n.secrets.Has(t, dots)
}

// MayPass reports whether a search with this filter may include secrets. The argument may have several
// filters, separated by spaces. A search with a filter also includes hidden files that match the filter.
func (n *Names) MayPass(filter string) bool {
	for one := range strings.FieldsFuncSeq(filter, func(r rune) bool { return r <= ' ' }) {
		all := alternatives(one)
		if len(all) == 0 {
			return true
		}
		for _, alt := range all {
			if strings.HasPrefix(alt, "!") {
				continue // a filter with ! excludes files
			}
			segs := strings.Split(alt, "/")
			name := segs[len(segs)-1]
			segs = slices.DeleteFunc(segs[:len(segs)-1], func(s string) bool { return strings.Trim(s, "*") == "" })
			if n.MayBe(strings.Join(append(segs, name), "/"), &pathname.Location{}, true) {
				return true
			}
		}
	}
	return false
}

// FilterMayInclude reports whether a search with this file name filter may show a file with this
// name. In doubt it returns true.
func FilterMayInclude(filter, base string) bool {
	return strings.ContainsAny(filter, "/{[,! ") || pathname.MayMatch(filter, base)
}

// maxAlternatives is the largest number of filters to which a filter with braces may expand.
const maxAlternatives = 64

// alternatives expands a filter with braces, such as {a,b}, and splits it at commas outside braces.
// If the result would be more than maxAlternatives filters, alternatives returns nil.
func alternatives(filter string) []string {
	out, todo := []string(nil), []string{filter}
	for len(todo) > 0 {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		end := strings.IndexByte(one, '}')
		open := strings.LastIndexByte(one[:max(end, 0)], '{')
		switch {
		case len(out)+len(todo) > maxAlternatives:
			return nil
		case open >= 0:
			for inner := range strings.SplitSeq(one[open+1:end], ",") {
				todo = append(todo, one[:open]+inner+one[end+1:])
			}
		default:
			out = append(out, strings.Split(strings.NewReplacer("{", "", "}", "").Replace(one), ",")...)
		}
	}
	return out
}

// Own reports whether p may mean one of nod's own files. A pattern counts only if it contains a part of the
// file's name. The pattern in rm * therefore does not count; nod asks about rm for other reasons.
func (n *Names) Own(p string, loc *pathname.Location) bool {
	if !n.guarded && !mayNameOwn(p) && !slices.ContainsFunc(loc.Dirs, mayNameOwn) {
		return false
	}
	if len(p) > 2 && p[0] == '-' && p[1] != '-' && n.Own(p[2:], loc) {
		return true // in -oFILE, the path follows the flag's letter directly
	}
	for _, at := range pathname.Pieces(p) {
		if n.spellsOwn(at) {
			return true
		}
		for _, r := range loc.Resolve(at) {
			if n.spellsOwn(r) {
				return true
			}
		}
	}
	return false
}

// mayNameOwn is a fast check. Every path of nod's own files contains "nod", so a path without "nod"
// and without a wildcard is not such a file.
func mayNameOwn(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?', '[':
			return true
		case 'n', 'N':
			if i+2 < len(p) && p[i+1]|0x20 == 'o' && p[i+2]|0x20 == 'd' {
				return true
			}
		}
	}
	return false
}

// spellsOwn reports whether p, as it is written, means one of nod's own files.
func (n *Names) spellsOwn(p string) bool {
	if pathname.IsGlob(p) {
		for seg := range strings.SplitSeq(pathname.Slashes(p), "/") {
			if pathname.IsGlob(seg) && len(strings.Trim(seg, "*?[]")) < 2 {
				return false
			}
			for i := 0; i < len(seg); i++ {
				if seg[i] >= 0x80 {
					return false
				}
			}
		}
	}
	return n.own.Has(p, true)
}
