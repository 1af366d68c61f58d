//! Options that let out of a container what it is there to hold.

/// Options that open a container, with the value that does, and what comes of it.
const OPENINGS: &[(&[&str], Opened, &str)] = &[
    (
        &["--privileged"],
        Opened::Alone,
        "gives the container every right over this machine",
    ),
    (
        &["--pid"],
        Opened::By("host"),
        "lets the container see and end every process of this machine",
    ),
    (
        &["--cap-add"],
        Opened::By("SYS_ADMIN"),
        "gives the container rights by which it can leave its bounds",
    ),
    (
        &["--cap-add"],
        Opened::By("ALL"),
        "gives the container rights by which it can leave its bounds",
    ),
    (
        &["-v", "--volume", "--mount"],
        Opened::From("/"),
        "opens the whole disk of this machine to the container",
    ),
    (
        &["-v", "--volume", "--mount"],
        Opened::From("/var/run/docker.sock"),
        "lets the container start others with every right over this machine",
    ),
];

/// How an option opens a container.
#[derive(Clone, Copy)]
enum Opened {
    /// By standing there.
    Alone,
    /// By this value, however it is written.
    By(&'static str),
    /// By this place of the machine.
    From(&'static str),
}

/// A word as an option of a container and what is written at it: `--volume=/:/h`, `-v/:/h`, and `-itv` for `-i -t
/// -v`.
pub(super) fn option(word: &str) -> (&str, Option<&str>) {
    /// Letters that take no value.
    const ALONE: &str = "itdPq";
    let letters = word.strip_prefix('-').unwrap_or_default();
    if letters
        .trim_start_matches(|c| ALONE.contains(c))
        .starts_with('v')
    {
        let value = letters.trim_start_matches(|c| ALONE.contains(c));
        let value = value.strip_prefix('v').unwrap_or_default();
        let value = value.strip_prefix('=').unwrap_or(value);
        return ("-v", (!value.is_empty()).then_some(value));
    }
    match word.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None => (word, None),
    }
}

/// What an option of a container means for the machine, if that is more than one would expect.
pub(super) fn opening(option: &str, value: Option<&str>) -> Option<&'static str> {
    let value = value.unwrap_or_default();
    let row = OPENINGS.iter().find(|(options, how, _)| {
        options.contains(&option)
            && match how {
                Opened::Alone => !value.eq_ignore_ascii_case("false"),
                Opened::By(wanted) => {
                    let value = value.to_ascii_uppercase();
                    let value = value.strip_prefix("CAP_").unwrap_or(&value);
                    value.eq_ignore_ascii_case(wanted)
                }
                Opened::From(place) => opened_place(value) == Some(*place),
            }
    });
    row.map(|(_, _, risk)| *risk)
}

/// The place of the machine that a volume or mount opens.
fn opened_place(value: &str) -> Option<&str> {
    let named = value.split(',').find_map(|part| {
        let (key, place) = part.split_once('=')?;
        matches!(key, "source" | "src").then_some(place)
    });
    let place = named.or_else(|| Some(value.split_once(':')?.0))?;
    match place.trim_end_matches('/') {
        "" if place.starts_with('/') => Some("/"),
        "/run/docker.sock" => Some("/var/run/docker.sock"),
        place => Some(place),
    }
}
