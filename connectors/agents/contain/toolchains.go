package contain

// toolVariables are environment variables with the directory of a toolchain. cacheVariables are
// environment variables with the directory of a toolchain's cache.
var (
	toolVariables  = []string{"GOROOT", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "JAVA_HOME", "VOLTA_HOME", "BUN_INSTALL", "DENO_INSTALL", "PNPM_HOME", "DOTNET_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "ANDROID_HOME", "ANDROID_SDK_ROOT"}
	cacheVariables = []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "YARN_CACHE_FOLDER", "CCACHE_DIR", "SCCACHE_DIR", "PLAYWRIGHT_BROWSERS_PATH"}
)
