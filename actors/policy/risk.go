package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// riskRank orders the risks; -1 for what is none.
func riskRank(r schemas.Risk) int {
	return slices.Index([]schemas.Risk{schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh}, r)
}

// hazard is a risk and its reason.
type hazard struct {
	risk schemas.Risk
	why  string
}

// hazards says what commands do, by name, or by name and first words. The
// longest match counts.
var hazards = buildHazards()

func buildHazards() map[string]hazard {
	out := map[string]hazard{}
	add := func(risk schemas.Risk, why string, names ...string) {
		for _, n := range names {
			out[n] = hazard{risk, why}
		}
	}
	add(schemas.RiskMedium, "deletes files", "rm", "rmdir", "unlink", "git rm", "trash")
	add(schemas.RiskHigh, "destroys data", "shred", "dd", "wipefs", "truncate", "srm")
	add(schemas.RiskHigh, "writes to a disk", "mkfs", "fdisk", "parted", "diskutil", "mount", "umount")
	add(schemas.RiskMedium, "writes files", "cp", "mv", "mkdir", "touch", "tee", "ln", "install", "patch", "unzip", "tar", "split", "rsync", "cpio", "7z", "zip")
	add(schemas.RiskMedium, "changes who may use files", "chmod", "chown", "chgrp", "setfacl", "chattr", "umask")
	add(schemas.RiskHigh, "runs as root", "sudo", "doas", "su", "runuser", "pkexec")
	add(schemas.RiskMedium, "uses the network", "curl", "wget", "nc", "ncat", "telnet", "ftp", "sftp", "ping", "dig", "nslookup", "host", "git fetch", "git pull", "git clone", "git ls-remote", "gh", "glab", "http", "openssl", "npm view")
	add(schemas.RiskHigh, "runs on another machine", "ssh", "scp", "mosh", "ansible", "ansible-playbook")
	add(schemas.RiskHigh, "publishes", "git push", "npm publish", "cargo publish", "twine", "docker push", "gh release", "gh pr merge", "pnpm publish", "yarn publish", "gem push")
	add(schemas.RiskHigh, "discards changes", "git reset", "git clean", "git restore", "git checkout", "git stash drop", "git stash clear", "git branch", "git update-ref", "git filter-branch", "git rebase", "git reflog")
	add(schemas.RiskMedium, "changes the repository", "git", "git commit", "git add", "git merge", "git tag", "git stash", "git switch")
	add(schemas.RiskHigh, "changes settings", "git config", "defaults", "sysctl", "crontab", "systemctl", "launchctl", "at", "batch", "visudo", "usermod", "useradd", "passwd")
	add(schemas.RiskMedium, "stops processes", "kill", "pkill", "killall")
	add(schemas.RiskHigh, "stops the machine", "shutdown", "reboot", "halt", "poweroff")
	add(schemas.RiskMedium, "installs software", "apt", "apt-get", "brew", "dnf", "yum", "pacman", "apk", "snap", "pip install", "pip3 install", "npm install", "npm i", "npm ci", "pnpm install", "pnpm add", "yarn add", "yarn install", "bun add", "bun install", "cargo install", "go install", "go get", "gem install", "uv add", "uv pip", "poetry add", "composer require", "pipx", "npx", "bunx", "uvx")
	add(schemas.RiskMedium, "runs the project's code", "make", "go test", "go run", "go build", "go generate", "go vet", "npm test", "npm run", "npm start", "pnpm", "yarn", "bun", "cargo", "pytest", "gradle", "mvn", "dotnet", "tsc", "eslint", "jest", "vitest", "swift", "flutter", "dart", "ruff", "mypy", "golangci-lint", "just", "task", "rake", "bundle", "mix", "cmake", "ninja", "bazel", "tox", "nox")
	add(schemas.RiskHigh, "runs code that the command holds", "eval", "sh", "bash", "zsh", "dash", "fish", "ksh", "source", ".")
	add(schemas.RiskMedium, "runs a program", "python", "python3", "node", "deno", "ruby", "perl", "php", "lua", "osascript")
	add(schemas.RiskMedium, "controls containers", "docker", "podman", "docker-compose", "colima")
	add(schemas.RiskHigh, "changes other systems", "kubectl", "helm", "terraform", "tofu", "pulumi", "aws", "gcloud", "az", "heroku", "fly", "vercel", "netlify", "wrangler", "psql", "mysql", "mongo", "mongosh", "redis-cli", "sqlite3")
	add(schemas.RiskHigh, "shows secrets", "printenv", "env", "set", "security", "op", "pass", "vault", "gpg", "git credential")
	return out
}

// inlineCode are flags of programs that take code as their value.
var inlineCode = map[string]string{"python": "-c", "python3": "-c", "node": "-e", "deno": "eval", "ruby": "-e", "perl": "-e", "php": "-r", "lua": "-e", "osascript": "-e"}

// risk names what a command line may do, from the table, and how bad that is.
func (f *facts) risk(line *scope) (schemas.Risk, []string) {
	worst, why := schemas.RiskLow, []string(nil)
	add := func(h hazard) {
		if riskRank(h.risk) > riskRank(worst) {
			worst = h.risk
		}
		if !slices.Contains(why, h.why) {
			why = append(why, h.why)
		}
	}
	for _, argv := range f.argvs {
		for _, h := range f.hazards(argv) {
			add(h)
		}
	}
	if len(f.writes) > 0 {
		add(hazard{schemas.RiskMedium, "writes files"})
	}
	for _, w := range f.piped {
		if h := hazards[base(w)]; strings.HasPrefix(h.why, "runs code") || h.why == "runs a program" {
			add(hazard{schemas.RiskHigh, "runs what it is sent"})
		}
	}
	for _, w := range append(f.words[:len(f.words):len(f.words)], f.writes...) {
		if p := slashes(w); (isAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, "../")) && p != "/dev/null" && f.place.project != "" && !f.place.inProject(p) {
			add(hazard{schemas.RiskMedium, "outside the project"})
			break
		}
	}
	if line.touches() || slices.ContainsFunc(f.words, func(w string) bool { return w != "" && f.pol.secret(w, f.place, false) }) {
		add(hazard{schemas.RiskHigh, "touches a secret or settings"})
	}
	if f.own != "" {
		add(hazard{schemas.RiskHigh, "changes nod itself"})
	}
	if f.subst {
		add(hazard{schemas.RiskMedium, "runs a command inside another"})
	}
	if len(why) == 0 && !line.harmless() {
		add(hazard{schemas.RiskMedium, "runs a command that nod does not know to be harmless"})
	}
	return worst, why
}

// hazards are what one command may do.
func (f *facts) hazards(argv []string) []hazard {
	name := base(argv[0])
	h, ok := hazards[name]
	for n := 2; n <= 3 && n <= len(argv); n++ {
		if more, found := hazards[name+" "+strings.Join(argv[1:n], " ")]; found {
			h, ok = more, true
		}
	}
	if name == "git" && len(argv) > 1 && f.pol.git[argv[1]] != nil && h.why == "changes the repository" {
		ok = false // a read, or refused for a reason of its own
	}
	var out []hazard
	if ok {
		out = append(out, h)
	}
	switch {
	case h.why == "deletes files" && slices.ContainsFunc(argv[1:], func(a string) bool { return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "rRf") }):
		out = append(out, hazard{schemas.RiskHigh, "deletes whole directories or without asking"})
	case slices.Contains(argv[1:], inlineCode[name]) && inlineCode[name] != "":
		out = append(out, hazard{schemas.RiskHigh, "runs code that the command holds"})
	case name == "git" && slices.ContainsFunc(argv, func(a string) bool { return a == "--force" || a == "-f" || a == "--force-with-lease" || a == "--hard" }):
		out = append(out, hazard{schemas.RiskHigh, "overwrites what others may need"})
	case name == "find" && slices.Contains(argv, "-delete"):
		out = append(out, hazard{schemas.RiskHigh, "deletes files"})
	case name == "sed" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") }):
		out = append(out, hazard{schemas.RiskMedium, "writes files"})
	}
	return out
}
