//! Environment variables that decide which code a program runs.

use crate::policy::has;

/// Name prefixes of variables that program loaders read.
const FAMILIES: &[&str] = &["LD_", "DYLD_", "BASH_FUNC_"];

/// Single variables, separated by spaces, by the program that reads them.
const NAMES: &[&str] = &[
    // Program lookup.
    "PATH",
    // Settings, and user packages of languages.
    "HOME XDG_CONFIG_HOME XDG_DATA_HOME GCONV_PATH OPENSSL_CONF OPENSSL_MODULES",
    // Shells.
    "BASH_ENV ENV SHELLOPTS PROMPT_COMMAND PS4 ZDOTDIR",
    // Python.
    "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONEXECUTABLE PYTHONPLATLIBDIR \
     PYTHONBREAKPOINT PYTHONWARNINGS",
    // Python package indexes.
    "UV_INDEX UV_INDEX_URL UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_CONFIG_FILE \
     PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CONFIG_FILE",
    // Node.
    "NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE NPM_CONFIG_SCRIPT_SHELL \
     NPM_CONFIG_NODE_OPTIONS NPM_CONFIG_USERCONFIG NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_PREFIX \
     NPM_CONFIG_REGISTRY",
    // Perl, Ruby, PHP and Lua.
    "PERL5OPT PERL5LIB PERLLIB PERL5DB RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PHPRC \
     PHP_INI_SCAN_DIR LUA_INIT LUA_PATH LUA_CPATH",
    // Java and .NET.
    "CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS DOTNET_STARTUP_HOOKS \
     CORECLR_PROFILER_PATH",
    // Git.
    "GIT_EXEC_PATH GIT_SSH GIT_SSH_COMMAND",
];

/// Returns whether a variable decides which code a program runs. npm ignores the case of names.
pub(crate) fn loads_code(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let known = if upper.starts_with("NPM_CONFIG_") {
        &upper
    } else {
        name
    };
    NAMES.iter().any(|names| has(names, known))
        || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::loads_code;

    #[test]
    fn variables_that_load_code_are_detected() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "npm_config_script_shell",
            "HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "PIP_INDEX_URL",
            "PIP_EXTRA_INDEX_URL",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in [
            "TOKEN",
            "HOMEPAGE",
            "UV_INDEX_MAIN_PASSWORD",
            "path",
            "MY_LD_X",
            "NODE_ENV",
            "NPM_CONFIG_X",
        ] {
            assert!(!loads_code(name), "{name}");
        }
    }
}
