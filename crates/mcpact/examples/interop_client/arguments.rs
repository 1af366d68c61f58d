//! Command line arguments.

use mcpact::client::{ChildCommand, EraMode, Revision, Target};

use crate::script::Script;

/// Command line arguments.
pub(crate) struct Arguments {
    pub(crate) mode: EraMode,
    pub(crate) script: Script,
    pub(crate) target: Target,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut mode, mut script) = (EraMode::Auto, Script::default());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
            match word.as_str() {
                "--mode" => mode = mode_of(&value()?)?,
                "--script" => {
                    let read = serde_json::from_str(&value()?);
                    script = read.map_err(|error| format!("the script cannot be read: {error}"))?;
                }
                "--url" => {
                    let target = Target::Url(value()?);
                    return Ok(Self {
                        mode,
                        script,
                        target,
                    });
                }
                "--stdio" => {
                    let target = ChildCommand::new(value()?).with_args(words).into();
                    return Ok(Self {
                        mode,
                        script,
                        target,
                    });
                }
                unknown => return Err(format!("`{unknown}` is not an option")),
            }
        }
        Err("name a server with `--url` or `--stdio`".to_owned())
    }
}

fn mode_of(text: &str) -> Result<EraMode, String> {
    match text {
        "auto" => Ok(EraMode::Auto),
        "legacy" => Ok(EraMode::Legacy),
        "modern" => Ok(EraMode::Modern),
        revision => Revision::parse(revision)
            .map(EraMode::Pin)
            .ok_or(format!("`{revision}` is neither a mode nor a revision")),
    }
}
