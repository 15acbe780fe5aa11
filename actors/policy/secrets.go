package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// secretNames are files and directories that hold secrets, or that configure which
// programs run. A name matches a path segment anywhere, several match consecutive
// segments, and every path below matches too; a leading / ties a name to the root. Case
// does not count, as in the file systems of macOS and Windows.
var secretNames = []string{
	// keys
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
	// cloud profiles
	".aws", ".azure", ".minikube", "/etc/kubernetes", "/etc/rancher", ".config/linode-cli", ".gcloud", ".config/gcloud", ".kube", "kubeconfig", "*.kubeconfig", ".oci", ".cloudflared", ".config/hcloud", ".config/scw", ".config/gh", ".config/hub", ".config/glab-cli",
	".config/doctl", ".config/op", ".config/rclone", ".fly", ".heroku", ".wrangler", ".config/configstore", ".config/heroku",
	".config/github-copilot", "application support/gcloud",
	// browser profiles
	".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/bravesoftware", ".config/microsoft-edge*",
	"application support/google/chrome*", "application support/firefox", "application support/bravesoftware",
	"application support/microsoft edge*", "application support/arc", "library/safari", "library/cookies",
	"appdata/local/google/chrome", "appdata/roaming/mozilla", "appdata/local/microsoft/edge",
	// processes and devices show other programs' secrets, or connect
	"/proc", "/dev", "/inet", "/inet4", "/inet6",
	// agents' settings, hooks and logins
	".claude.json", ".claude/settings*.json", ".claude/.credentials.json", ".claude/hooks", ".mcp.json", ".codex/auth.json",
	".codex/config.toml", ".codex/hooks.json", ".codex/hooks", ".codex/rules", ".gemini/settings.json",
	".gemini/oauth_creds.json", ".qwen/settings.json", ".copilot/hooks", ".copilot/config.json", ".copilot/mcp-config.json",
	".github/hooks", ".config/opencode", ".local/share/opencode/auth.json", "opencode.json", "opencode.jsonc", ".cursor/mcp.json",
	".cursor/hooks.json", ".cursor/cli.json", ".augment/settings.json", ".augment/session.json", ".continue/config.json", ".continue/config.yaml",
	".codeium/windsurf/mcp_config.json", ".roo/mcp.json", ".kiro/settings", ".amazonq/mcp.json", ".vscode/mcp.json", ".aider.conf.yml", ".config/goose",
}

// ownNames are nod's own files: data, settings and keys.
var ownNames = []string{
	".nod", ".local/share/nod", ".config/nod", ".local/state/nod", "application support/nod", "appdata/local/nod", "appdata/roaming/nod",
}

// openNames look like secrets and are meant to be read.
var openNames = []string{
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "example.env", "sample.env", "template.env",
	"id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub",
	"/dev/null", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime",
}

// sourceExtensions are extensions of files that people write to be read.
var sourceExtensions = map[string]bool{
	"c": true, "cc": true, "cpp": true, "cs": true, "css": true, "dart": true, "fish": true, "go": true, "h": true, "hpp": true, "html": true, "java": true,
	"js": true, "json": true, "jsx": true, "kt": true, "lock": true, "log": true, "lua": true, "md": true, "mdx": true, "mjs": true, "php": true, "pl": true,
	"proto": true, "py": true, "rb": true, "rs": true, "scala": true, "scss": true, "sh": true, "sql": true, "svelte": true, "swift": true, "tf": true,
	"toml": true, "ts": true, "tsx": true, "txt": true, "vue": true, "xml": true, "yaml": true, "yml": true, "zig": true,
}

// sourceGlob reports whether a pattern is *.EXT of such files.
func sourceGlob(p string) bool {
	base := p[strings.LastIndexByte(p, '/')+1:]
	return strings.HasPrefix(base, "*.") && sourceExtensions[base[2:]]
}

// mayBeSecret reports whether t may stand for a secret or for a file of nod's own.
//
// A backslash is a separator on Windows, and in a pattern it makes the next character
// literal; both meanings count.
func (p *Policy) mayBeSecret(t string, loc *pathname.Location, dots bool) bool {
	if p.listedSecret(t, dots) {
		return true
	}
	if strings.IndexByte(t, '\\') >= 0 && p.mayBeSecret(strings.ReplaceAll(t, `\`, ""), loc, dots) {
		return true
	}
	if pathname.IsAbs(pathname.Slashes(t)) || !loc.LeadsToSecret && !strings.Contains(t, "..") && !strings.HasPrefix(t, "~") {
		return false
	}
	for _, r := range loc.Resolve(t) {
		if p.listedSecret(r, dots) {
			return true
		}
	}
	return false
}

// holdsSecrets reports whether the tree below t is a home directory or has listed
// secrets in it: ~/.config holds those of many programs.
func (p *Policy) holdsSecrets(t string, loc *pathname.Location) bool {
	if loc.AboveHome(t) || p.secrets.MayLieBelow(t, loc) {
		return true
	}
	return slices.ContainsFunc(loc.Resolve(t), func(full string) bool { return p.secrets.MayLieBelow(full, loc) })
}

func (p *Policy) listedSecret(t string, dots bool) bool {
	if !pathname.IsGlob(t) {
		low := strings.ToLower(pathname.Slashes(t))
		if p.readable[low[strings.LastIndexByte(low, '/')+1:]] || p.readable[low] {
			dir := strings.LastIndexByte(low, '/')
			return dir > 0 && low != "/dev/null" && !strings.HasPrefix(low, "/proc/") && p.secrets.Has(low[:dir], dots)
		}
	}
	return p.secrets.Has(t, dots)
}
