package contain

// toolDirs are the toolchains' directories in the home directory, which a command may read. The list
// contains only directories with programs and libraries, and none with settings or logins.
var toolDirs = []string{
	".cargo/bin", ".cargo/env", ".rustup", ".nvm", ".fnm", ".volta", ".asdf", ".local/share/mise", ".local/share/fnm", ".local/share/rtx",
	".pyenv", ".rbenv", ".rvm", ".goenv", ".jenv", ".sdkman", ".bun/bin", ".bun/install", ".deno/bin", ".local/bin", ".local/lib",
	".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/virtualenvs", ".npm-global", ".yarn/bin", ".nix-profile", ".opam", ".ghcup", ".cabal/bin",
	".stack/programs", ".dotnet", ".gem/ruby", ".local/share/gem", ".juliaup", ".swiftly", ".elan", "go/bin", "sdk", "flutter", ".m2/wrapper",
	".config/go/env", ".cache/ms-playwright", ".cache/Cypress", ".cache/puppeteer",
}

// cacheDirs are the toolchains' caches in the home directory. A command may read them. Its changes go
// to an overlay, so that it cannot put code into later builds outside the container.
var cacheDirs = []string{
	".cache/go-build", "go/pkg", ".npm/_cacache", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/pnpm", ".local/share/pnpm", ".yarn/berry",
	".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/wrapper", ".gradle/native", ".m2/repository", ".cache/node", ".cache/ccache", ".ccache",
	".cache/sccache", ".cache/golangci-lint", ".cache/staticcheck", ".cache/pypoetry", ".nuget/packages", ".cache/composer", ".composer/cache",
	".ivy2/cache", ".sbt/boot", ".cache/coursier", ".cache/zig", ".cabal/packages", ".stack/pantry", ".hex/packages", ".mix/archives", ".mix/elixir", ".bundle/cache", ".pub-cache",
	".cache/pre-commit", ".bun/cache", ".cache/deno", ".cache/turbo",
}

// toolVariables are environment variables that name a toolchain's directory. cacheVariables are those
// that name a cache.
var (
	toolVariables  = []string{"GOROOT", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "JAVA_HOME", "VOLTA_HOME", "BUN_INSTALL", "DENO_INSTALL", "PNPM_HOME", "DOTNET_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "ANDROID_HOME", "ANDROID_SDK_ROOT"}
	cacheVariables = []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "YARN_CACHE_FOLDER", "CCACHE_DIR", "SCCACHE_DIR", "PLAYWRIGHT_BROWSERS_PATH"}
)

// systemPaths are paths outside the home directory that a command may read in addition to
// exec.SystemPaths.
var systemPaths = []string{
	"/opt", "/etc/alternatives", "/etc/java", "/etc/maven", "/etc/python3", "/etc/perl", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/mke2fs.conf", "/etc/ssl/certs", "/etc/machine-id", "/etc/shells", "/etc/login.defs", "/etc/debian_version", "/etc/redhat-release", "/etc/rpc", "/etc/protocols",
	"/etc/xdg", "/etc/vim", "/etc/nanorc", "/etc/bash_completion.d", "/etc/skel", "/etc/pkcs11", "/etc/R", "/etc/ImageMagick-6", "/etc/lsb-release",
}
