//! Programs that run a script, and the syntax of their options.

use super::tables::{Kind, has, kind, program_name};

/// A program that runs the script in its arguments. Lists are separated by spaces.
#[derive(Debug)]
pub(crate) struct Interpreter {
    names: &'static str,
    /// Subcommands before the script.
    verbs: &'static str,
    /// Options or subcommands that take code.
    pub(super) inline: &'static str,
    /// Options that take a value.
    valued: &'static str,
    /// Options that take a file or module of code.
    loads: &'static str,
    /// Options with an optional value, joined to the letter.
    joined: &'static str,
    /// Options that change the working directory.
    folder: &'static str,
    /// Options that take the name of the module that is run.
    module: &'static str,
    /// Endings that are tried after the path of a script.
    pub(crate) endings: &'static [&'static str],
    /// Files that are run if the script is a folder.
    pub(crate) indexes: &'static [&'static str],
    /// Files of a project that decide what runs if the script is no file.
    pub(crate) manifests: &'static [&'static str],
}

const EMPTY: Interpreter = Interpreter {
    names: "",
    verbs: "",
    inline: "",
    valued: "",
    loads: "",
    joined: "",
    folder: "",
    module: "",
    endings: &[""],
    indexes: &[],
    manifests: &[],
};

/// A shell; its name is known by its kind.
const SHELL: Interpreter = Interpreter {
    inline: "-c --command",
    valued: "-o +o -O +O",
    loads: "--rcfile --init-file",
    ..EMPTY
};

const NODE_VALUED: &str = "-C --conditions --input-type --env-file --env-file-if-exists --inspect-port --icu-data-dir \
     --openssl-config --title --trace-event-categories --trace-event-file-pattern --unhandled-rejections \
     --max-http-header-size --redirect-warnings --report-dir --report-directory --report-filename --report-signal \
     --diagnostic-dir --disable-proto --disable-warning --dns-result-order --experimental-default-type \
     --experimental-config-file --experimental-sea-config --heapsnapshot-signal --heapsnapshot-near-heap-limit \
     --localstorage-file --secure-heap --secure-heap-min --security-revert --stack-trace-limit --tls-cipher-list \
     --tls-keylog --tls-max-v1.2 --trace-require-module --use-largepages --v8-pool-size --watch-path \
     --watch-kill-signal --cpu-prof-dir --cpu-prof-name --cpu-prof-interval --heap-prof-dir --heap-prof-name \
     --heap-prof-interval --allow-fs-read --allow-fs-write --test-name-pattern --test-reporter \
     --test-reporter-destination --test-concurrency --test-timeout --test-shard --network-family-autoselection-attempt-timeout";

const NODE_LOADS: &str = "-r --require --import --loader --experimental-loader";

const JAVASCRIPT: &[&str] = &[
    "", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json",
];

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: "python pythonw pypy py",
        inline: "-c",
        valued: "-W -X --check-hash-based-pycs",
        module: "-m",
        indexes: &["__main__.py"],
        ..EMPTY
    },
    Interpreter {
        names: "node nodejs",
        verbs: "run inspect",
        inline: "-e --eval -p --print",
        valued: NODE_VALUED,
        loads: NODE_LOADS,
        endings: JAVASCRIPT,
        indexes: &["index.js", "index.mjs", "index.cjs"],
        ..EMPTY
    },
    Interpreter {
        names: "tsx ts-node ts-node-esm ts-node-script ts-node-transpile-only vite-node",
        verbs: "watch",
        inline: "-e --eval -p --print",
        valued: "--tsconfig -P --project -O --compilerOptions -I --ignore --include --exclude --clear-screen --cwd \
                 --env-file -C --conditions --ignoreDiagnostics --compiler --transpiler --scopeDir",
        loads: NODE_LOADS,
        endings: JAVASCRIPT,
        indexes: &["index.ts", "index.js"],
        ..EMPTY
    },
    Interpreter {
        names: "bun",
        verbs: "run x",
        inline: "-e --eval -p --print",
        valued: "-c --config --env-file --tsconfig-override --define -d --loader -l --conditions --main-fields \
                 --extension-order --jsx-factory --jsx-fragment --jsx-import-source --jsx-runtime --port --origin -u \
                 --filter -F --title --install --shell --dns-result-order",
        loads: "-r --preload --require --import",
        folder: "--cwd",
        endings: JAVASCRIPT,
        indexes: &["index.ts", "index.tsx", "index.js"],
        manifests: &["package.json"],
        ..EMPTY
    },
    Interpreter {
        names: "deno",
        verbs: "run serve task",
        inline: "eval",
        valued: "-c --config --import-map --lock -L --log-level --location --seed --cert --ext --host --port",
        loads: "--preload --import",
        manifests: &["deno.json", "deno.jsonc", "package.json"],
        ..EMPTY
    },
    Interpreter {
        names: "mcp fastmcp",
        verbs: "run dev",
        valued: "-t --transport --host --port -p -l --log-level --path --server-args --server-spec -e --with \
                 --with-editable --with-requirements --python --project --ui-port --server-port",
        ..EMPTY
    },
    Interpreter {
        names: "go",
        verbs: "run",
        valued: "-p -tags -ldflags -gcflags -asmflags -gccgoflags -mod -buildmode -buildvcs -compiler -covermode \
                 -coverpkg -installsuffix -pkgdir -o",
        loads: "-exec -toolexec -overlay -modfile -pgo",
        folder: "-C",
        indexes: &["main.go"],
        ..EMPTY
    },
    // Code of a project or image that is not in the arguments.
    Interpreter {
        names: "cargo make gmake just task rake mage bundle mix gradle mvn docker podman",
        verbs: "run exec",
        ..EMPTY
    },
    Interpreter {
        names: "perl",
        inline: "-e -E",
        valued: "-I -M -m",
        joined: "-0 -l -C -D -d -F -i -t -V -x",
        ..EMPTY
    },
    Interpreter {
        names: "ruby jruby",
        inline: "-e",
        valued: "-I -E --encoding --external-encoding --internal-encoding --backtrace-limit",
        loads: "-r",
        folder: "-C",
        joined: "-0 -F -i -K -T -W -x",
        ..EMPTY
    },
    Interpreter {
        names: "php",
        inline: "-r -B -R -E",
        valued: "-c -d -z -t -S",
        loads: "-f --file -F --process-file",
        ..EMPTY
    },
    Interpreter {
        names: "lua luajit",
        inline: "-e",
        valued: "-l -j -b",
        joined: "-O",
        ..EMPTY
    },
    Interpreter {
        names: "rscript",
        inline: "-e",
        ..EMPTY
    },
    Interpreter {
        names: "osascript",
        inline: "-e",
        valued: "-l -s",
        ..EMPTY
    },
    Interpreter {
        names: "java",
        valued: "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-reads \
                 --add-exports --add-opens --limit-modules --patch-module --enable-native-access -d --describe-module -m --module",
        loads: "-jar",
        ..EMPTY
    },
    Interpreter {
        names: "dotnet",
        verbs: "exec",
        valued: "--additionalprobingpath --depsfile --fx-version --roll-forward --runtimeconfig --additional-deps",
        ..EMPTY
    },
];

/// Returns the interpreter with this program.
pub(crate) fn interpreter(program: &str) -> Option<&'static Interpreter> {
    if kind(program) == Some(Kind::Shell) {
        return Some(&SHELL);
    }
    let name = program_name(program);
    // `python3.12` is one of many.
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|row| has(row.names, family))
}

/// Options by which an interpreter takes code; none for other programs.
pub(super) fn inline_options(program: &str) -> Option<&'static str> {
    let is_shell = kind(program) == Some(Kind::Shell);
    let found = interpreter(program).filter(|_| !is_shell);
    found
        .map(|row| row.inline)
        .filter(|inline| !inline.is_empty())
}

/// Code in the arguments of an interpreter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments<'t> {
    /// Values of options that load code.
    pub(crate) loaded: Vec<&'t str>,
    /// The working directory, if it is not that of the program.
    pub(crate) folder: Option<&'t str>,
    /// The main code.
    pub(crate) main: Main<'t>,
}

/// Main code of an interpreter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Main<'t> {
    /// None in the arguments.
    #[default]
    Nothing,
    /// An argument is the code. Number of arguments up to it.
    Inline(usize),
    /// A file. Number of arguments up to it, and its path.
    Script(usize, &'t str),
    /// A module. Number of arguments up to its name, and the name.
    Module(usize, &'t str),
}

/// Use of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Inline,
    Value,
    Loads,
    Module,
    Folder,
    Joined,
}

impl Interpreter {
    /// Reads the arguments up to the main code. `is_file` returns whether a word is a script: an unknown option may take
    /// the word after it.
    pub(crate) fn read<'t>(
        &self,
        args: &[&'t str],
        is_file: impl Fn(&str) -> bool,
    ) -> Arguments<'t> {
        let mut found = Arguments::default();
        let (mut verbs, mut is_after_unknown, mut at) = (self.verbs, false, 0);
        while let Some(&word) = args.get(at) {
            let is_option = word.len() > 1 && (word.starts_with('-') || word.starts_with('+'));
            if word == "--" {
                if let Some(&script) = args.get(at + 1) {
                    found.main = Main::Script(at + 2, script);
                }
                return found;
            }
            if !is_option {
                if has(self.inline, word) {
                    found.main = Main::Inline(args.len().min(at + 2));
                    return found;
                }
                if has(verbs, word) {
                    verbs = "";
                } else if !is_after_unknown || is_file(word) {
                    found.main = Main::Script(at + 1, word);
                    return found;
                }
                is_after_unknown = false;
                at += 1;
                continue;
            }
            let known = self.option(word);
            is_after_unknown = known.is_none() && !word.contains('=');
            if let Some((usage, joined)) = known {
                if usage == Use::Inline {
                    found.main = Main::Inline(args.len().min(at + 2));
                    return found;
                }
                let value = match (usage, joined) {
                    (Use::Joined, _) => None,
                    (_, Some(joined)) => Some(joined),
                    (_, None) => {
                        at += 1;
                        args.get(at).copied()
                    }
                };
                match (usage, value) {
                    (Use::Module, Some(name)) => {
                        found.main = Main::Module(at + 1, name);
                        return found;
                    }
                    (Use::Loads, Some(file)) => found.loaded.push(file),
                    (Use::Folder, value) => found.folder = value,
                    _ => {}
                }
            }
            at += 1;
        }
        found
    }

    /// Returns the use of a known option, and its value if that is joined.
    fn option<'t>(&self, word: &'t str) -> Option<(Use, Option<&'t str>)> {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let Some(usage) = self.usage(name) {
            return Some((usage, joined));
        }
        if word.starts_with("--") {
            return None;
        }
        // Letters may be combined, the last one with its value.
        let letters = &word[1..];
        letters.char_indices().find_map(|(at, letter)| {
            let usage = self.usage(&format!("{}{letter}", &word[..1]))?;
            let joined = &letters[at + letter.len_utf8()..];
            Some((usage, Some(joined).filter(|joined| !joined.is_empty())))
        })
    }

    fn usage(&self, name: &str) -> Option<Use> {
        let rows = [
            (self.inline, Use::Inline),
            (self.valued, Use::Value),
            (self.loads, Use::Loads),
            (self.module, Use::Module),
            (self.folder, Use::Folder),
            (self.joined, Use::Joined),
        ];
        let row = rows.into_iter().find(|(list, _)| has(list, name))?;
        Some(row.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_behind_options() {
        let script = |at, word| Main::Script(at, word);
        for (line, expected) in [
            ("python3 server.py x", script(1, "server.py")),
            ("python3.12 -u server.py", script(2, "server.py")),
            ("python -X dev -W ignore server.py", script(5, "server.py")),
            ("python -Wignore -I server.py", script(3, "server.py")),
            ("python3 -um pkg.main x", Main::Module(2, "pkg.main")),
            ("python3 -mpkg", Main::Module(1, "pkg")),
            ("python3 -c code x", Main::Inline(2)),
            ("python3 -uc code", Main::Inline(2)),
            ("python3", Main::Nothing),
            ("node server.js", script(1, "server.js")),
            ("node --import tsx server.js", script(3, "server.js")),
            ("node --import=tsx server.js", script(2, "server.js")),
            (
                "node --no-warnings -r ./a.js server.js",
                script(4, "server.js"),
            ),
            ("node --unknown-flag server.js data", script(2, "server.js")),
            ("node --unknown-option 7 server.js", script(3, "server.js")),
            ("node --title x -- server.js", script(4, "server.js")),
            ("node -pe 1", Main::Inline(2)),
            ("tsx watch server.ts", script(2, "server.ts")),
            ("bun run server.ts", script(2, "server.ts")),
            ("bun --cwd x server.ts", script(3, "server.ts")),
            (
                "deno run --allow-net -c d.json server.ts",
                script(5, "server.ts"),
            ),
            ("deno eval code", Main::Inline(2)),
            (
                "perl -T -Ilib -MData::Dumper server.pl",
                script(4, "server.pl"),
            ),
            ("perl -i.bake server.pl", script(2, "server.pl")),
            (
                "ruby -W:no-deprecated -rjson server.rb",
                script(3, "server.rb"),
            ),
            ("php -d a=b server.php", script(3, "server.php")),
            ("sh server.sh -c", script(1, "server.sh")),
            ("bash -eo pipefail server.sh", script(3, "server.sh")),
            ("bash +x server.sh", script(2, "server.sh")),
            ("bash -ec code", Main::Inline(2)),
            ("java -cp a -jar server.jar", Main::Nothing),
            ("dotnet exec server.dll", script(2, "server.dll")),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let row = interpreter(words[0]).unwrap();
            let found = row.read(&words[1..], |word| word.contains('.'));
            assert_eq!(found.main, expected, "{line}");
        }
        let loads = |program: &str, args: &[&'static str]| {
            interpreter(program).unwrap().read(args, |_| true).loaded
        };
        assert_eq!(
            loads(
                "node",
                &["-r", "./a.js", "--import=./b.js", "s.js", "-r", "c"]
            ),
            ["./a.js", "./b.js"]
        );
        assert_eq!(loads("java", &["-jar", "a.jar"]), ["a.jar"]);
    }
}
