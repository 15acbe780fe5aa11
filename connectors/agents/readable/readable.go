// Package readable lists the directories of the system and of toolchains that a command may read
// without a permission, although they are outside its project. The packages that confine a command to
// its permissions use the lists. The policy uses them to name the permissions that a command lacks.
package readable

// System returns the paths that every confined command may read. Some of them may not exist. They are
// programs, libraries, and the files that programs need in order to start, to look up names and to
// check certificates. They contain no secret keys and no files of a user.
func System() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix/store", "/gnu/store",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path",
		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf",
		"/etc/services", "/etc/protocols", "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/ca-trust",
		"/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
		"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf", "/etc/os-release", "/etc/mime.types", "/etc/magic",
		"/etc/bash.bashrc", "/etc/profile", "/etc/profile.d", "/etc/inputrc", "/etc/terminfo", "/etc/fonts", "/etc/gitconfig",
		"/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
		"/dev/random", "/dev/urandom",
	}
}

// ContainedSystem returns the paths outside the home directory that a contained command may read
// besides those of System.
func ContainedSystem() []string {
	return []string{
		"/opt", "/etc/alternatives", "/etc/java", "/etc/maven", "/etc/python3", "/etc/perl", "/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/mke2fs.conf", "/etc/ssl/certs", "/etc/machine-id", "/etc/shells", "/etc/login.defs", "/etc/debian_version", "/etc/redhat-release", "/etc/rpc", "/etc/protocols",
		"/etc/xdg", "/etc/vim", "/etc/nanorc", "/etc/bash_completion.d", "/etc/skel", "/etc/pkcs11", "/etc/R", "/etc/ImageMagick-6", "/etc/lsb-release",
	}
}

// Toolchains returns the directories of toolchains, relative to the home directory. They contain
// programs and libraries, but no settings and no credentials.
func Toolchains() []string {
	return []string{
		".cargo/bin", ".cargo/env", ".rustup", ".nvm", ".fnm", ".volta", ".asdf", ".local/share/mise", ".local/share/fnm", ".local/share/rtx",
		".pyenv", ".rbenv", ".rvm", ".goenv", ".jenv", ".sdkman", ".bun/bin", ".bun/install", ".deno/bin", ".local/bin", ".local/lib",
		".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/virtualenvs", ".npm-global", ".yarn/bin", ".nix-profile", ".opam", ".ghcup", ".cabal/bin",
		".stack/programs", ".dotnet", ".gem/ruby", ".local/share/gem", ".juliaup", ".swiftly", ".elan", "go/bin", "sdk", "flutter", ".m2/wrapper",
		".config/go/env", ".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer",
	}
}

// Caches returns the caches of toolchains, relative to the home directory. A contained command may read
// them. Its changes go to an overlay, so that it cannot add code to later builds outside the container.
func Caches() []string {
	return []string{
		".cache/go-build", "go/pkg", ".npm/_cacache", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/pnpm", ".local/share/pnpm", ".yarn/berry",
		".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/wrapper", ".gradle/native", ".m2/repository", ".cache/node", ".cache/ccache", ".ccache",
		".cache/sccache", ".cache/golangci-lint", ".cache/staticcheck", ".cache/pypoetry", ".nuget/packages", ".cache/composer", ".composer/cache",
		".ivy2/cache", ".sbt/boot", ".cache/coursier", ".cache/zig", ".cabal/packages", ".stack/pantry", ".hex/packages", ".mix/archives", ".mix/elixir", ".bundle/cache", ".pub-cache",
		".cache/pre-commit", ".bun/cache", ".cache/deno", ".cache/turbo",
	}
}
