// Package readable lists the directories outside a project that a command may read without a
// permission. They belong to the system and to toolchains. The packages that confine commands to their
// permissions use these lists. The policy uses the lists to name the permissions that a command lacks.
package readable

// System returns the paths that every confined command may read, if they exist: programs,
// libraries, and the files that programs need to start, to look up names and to check certificates.
// These paths contain no secret keys and no files of a user.
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

// ContainedSystem returns the paths outside the home directory that a command in a container may
// read in addition to System.
func ContainedSystem() []string {
	return []string{
		"/opt", "/etc/alternatives", "/etc/java", "/etc/maven", "/etc/python3", "/etc/perl", "/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/mke2fs.conf", "/etc/ssl/certs", "/etc/machine-id", "/etc/shells", "/etc/login.defs", "/etc/debian_version", "/etc/redhat-release", "/etc/rpc", "/etc/protocols",
		"/etc/xdg", "/etc/vim", "/etc/nanorc", "/etc/bash_completion.d", "/etc/skel", "/etc/pkcs11", "/etc/R", "/etc/ImageMagick-6", "/etc/lsb-release",
	}
}

// Toolchains returns the directories of toolchains in the home directory, without the home
// directory's path. They contain programs and libraries, but no settings and no credentials.
func Toolchains() []string {
	return []string{
		".cargo/bin", ".cargo/env", ".rustup", ".nvm", ".fnm", ".volta", ".asdf", ".local/share/mise", ".local/share/fnm", ".local/share/rtx",
		".pyenv", ".rbenv", ".rvm", ".goenv", ".jenv", ".sdkman", ".bun/bin", ".bun/install", ".deno/bin", ".local/bin", ".local/lib",
		".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/virtualenvs", ".npm-global", ".yarn/bin", ".nix-profile", ".opam", ".ghcup", ".cabal/bin",
		".stack/programs", ".dotnet", ".gem/ruby", ".local/share/gem", ".juliaup", ".swiftly", ".elan", "go/bin", "sdk", "flutter", ".m2/wrapper",
		".config/go/env", ".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer",
	}
}

// Caches returns the caches of toolchains in the home directory, without the home directory's path.
// A command in a container may read the caches. Its changes go to an overlay, so that it cannot put
// code into later builds outside the container.
func Caches() []string {
	return []string{
		".cache/go-build", "go/pkg", ".npm/_cacache", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/pnpm", ".local/share/pnpm", ".yarn/berry",
		".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/wrapper", ".gradle/native", ".m2/repository", ".cache/node", ".cache/ccache", ".ccache",
		".cache/sccache", ".cache/golangci-lint", ".cache/staticcheck", ".cache/pypoetry", ".nuget/packages", ".cache/composer", ".composer/cache",
		".ivy2/cache", ".sbt/boot", ".cache/coursier", ".cache/zig", ".cabal/packages", ".stack/pantry", ".hex/packages", ".mix/archives", ".mix/elixir", ".bundle/cache", ".pub-cache",
		".cache/pre-commit", ".bun/cache", ".cache/deno", ".cache/turbo",
	}
}
