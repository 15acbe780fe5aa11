package contained

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
)

// newChecks returns the checks of commands whose words decide whether they may run contained.
func newChecks() map[string]func(*command) {
	table := map[string]func(*command){
		"rm": (*command).deletes, "unlink": (*command).deletes, "rmdir": (*command).removesEmpty, "cp": (*command).copies, "mv": (*command).moves, "ln": (*command).links,
		"touch": (*command).creates, "mkdir": (*command).creates, "tee": (*command).tees, "chmod": (*command).changesMode, "tar": (*command).archives, "unzip": (*command).archives,
		"git": (*command).git, "sed": (*command).edits, "awk": (*command).scans, "gawk": (*command).scans, "mawk": (*command).scans,
		"source": (*command).runsScript, ".": (*command).runsScript, "eval": (*command).evaluates, "trap": (*command).evaluates,
		"xargs": (*command).appends, "find": (*command).finds, "fd": (*command).finds, "fdfind": (*command).finds,
		"npx": (*command).npx, "bunx": (*command).npx, "pnpx": (*command).npx, "uvx": (*command).uvx, "curl": (*command).downloads, "wget": (*command).downloads,
		"kill": (*command).kills, "less": (*command).pages, "more": (*command).pages, "pip3": (*command).manages,
	}
	for name := range interpreters {
		table[name] = (*command).interprets
	}
	for name := range wrappers {
		table[name] = (*command).wraps
	}
	for name := range commands.Compressors() {
		table[name] = (*command).compresses
	}
	for name := range registries {
		table[name] = (*command).manages
	}
	return table
}

// kills checks the command kill, which in a container can stop only jobs that the same line started.
func (c *command) kills() {
	for _, t := range c.args {
		if !t.Known || !c.script.Background || !strings.HasPrefix(t.Text, "%") && !strings.HasPrefix(t.Text, "-") {
			c.refuse("stops a process that a contained command cannot reach")
			return
		}
	}
	if len(c.args) == 0 {
		c.refuse("stops a process that is not known")
	}
}

// pages checks the pagers "less" and "more", whose flags may name a file to write or a program.
func (c *command) pages() {
	for _, t := range c.args {
		if w := t.Before(); strings.HasPrefix(w, "-") && strings.ContainsAny(w, "oOkKtT-") && w != "--" || strings.HasPrefix(w, "+") {
			c.refuse("may write a file with these words")
		}
	}
}

// pureReaders are commands that write nothing, whatever their words are.
var pureReaders = set("ls cat head tail pwd echo which true false : sleep type printf wc cut nl tr rev tac paste fold expand column comm cmp diff seq grep egrep fgrep jq stat du df " +
	"basename dirname realpath readlink md5sum sha1sum sha256sum cksum shasum hexdump od strings ps date whoami id uname arch nproc hostname uptime free tty test [ cd wait jobs exit return break continue " +
	"shift local export unset set printenv getconf locale ldd readelf tput clear lsof pgrep bc expr")

// textCommands are commands that only print or compare their words.
var textCommands = set("echo printf : true false type which exit return set unset")

// patternFirst are the commands whose first operand is a pattern or a script.
var patternFirst = set("grep egrep fgrep rg sed awk gawk mawk jq ag ack")

var losesWork = set("rm unlink mv shred srm truncate dd wipefs trash trash-put rimraf del-cli gio rsync install split csplit zip 7z cpio patch bfg ed ex vi vim nvim emacs nano sponge rename prename mmv " +
	"dos2unix fallocate mkfs ddrescue fsck parallel watch entr script busybox toybox git-filter-repo yes tput-reset pax ar dropdb createdb " +
	"bsdtar jar 7za 7zr unrar unar wipe fdupes jdupes rdfind indent unix2dos mac2unix file-rename perl-rename logsave savelog logrotate convert magick mogrify vimdiff view gvim gview rvim mvim xxd git-annex tclsh wish expect " +
	"hg svn jj bzr cvs fossil darcs rcs ci co sl merge sdiff strip ranlib run-parts ucf uudecode zipcloak zipnote zipsplit funzip unzipsfx hardlink namei symlinks mkdtemp mknod mkfifo ptar clang-tidy scalar ssh-keygen gpg gpg2 certutil keytool " +
	"pwsh powershell powershell_ise cmd cscript wscript mshta rundll32 wsl nu elvish xonsh fish csh tcsh")

// The map people has the commands about which a person must decide, with the reasons.
var people = peopleTable()

func peopleTable() map[string]string {
	table := map[string]string{}
	for reason, names := range map[string]string{
		"uses your login there, which nod gives no contained command": "gh glab hub az aws gcloud heroku fly flyctl vercel netlify wrangler firebase supabase doctl linode-cli oci ibmcloud eb sam cdk serverless sls railway render",
		"starts another agent":                  "claude codex gemini opencode copilot aider goose amp cursor-agent qwen crush droid",
		"uses a database":                       "psql mysql mariadb mongo mongosh redis-cli sqlite3 sqlcmd clickhouse-client cqlsh prisma alembic flyway liquibase knex sequelize typeorm rails dbmate goose-db sqlx diesel pg_dump pg_restore mysqldump mongodump mongorestore influx cockroach duckdb django-admin",
		"runs outside containment":              "tmux screen systemd-run at batch crontab systemctl launchctl service docker podman docker-compose nerdctl colima kubectl helm minikube kind k9s limactl vagrant flatpak snap dbus-send gdbus busctl nod osascript open xdg-open",
		"runs as another user":                  "sudo doas su runuser pkexec chroot unshare nsenter bwrap firejail setpriv capsh",
		"reaches another machine":               "ssh scp sftp mosh telnet nc ncat socat ftp lftp rclone ansible ansible-playbook terraform tofu pulumi packer dig nslookup host ping http https xh websocat grpcurl",
		"installs software outside the project": "apt apt-get brew dnf yum pacman apk port choco winget scoop pipx gem conda mamba asdf mise nvm rustup sdk volta corepack easy_install cpan luarocks nix nix-env nix-shell",
		"changes what commands mean":            "alias unalias enable hash shopt function bind complete compgen umask ulimit chsh chown chgrp setfacl chattr mount umount",
		"debugs or traces processes":            "gdb lldb strace ltrace perf bpftrace dtrace",
		"stops processes or the machine":        "pkill killall skill shutdown reboot halt poweroff",
	} {
		for name := range set(names) {
			table[name] = reason
		}
	}
	return table
}
