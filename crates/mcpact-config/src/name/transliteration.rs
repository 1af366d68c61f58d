//! Transliteration of Latin letters to ASCII.

/// Letters with diacritics, and ligatures.
const LETTERS: &[(&str, &str)] = &[
    ("a", "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"),
    ("ae", "æ"),
    ("c", "çćĉċč"),
    ("d", "ďđð"),
    ("e", "èéêëēĕėęěẹẻẽếềểễệ"),
    ("g", "ĝğġģ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįıİǐịỉ"),
    ("j", "ĵ"),
    ("k", "ķ"),
    ("l", "ĺļľŀł"),
    ("n", "ñńņňŋ"),
    ("o", "òóôõöøōŏőơǒọỏốồổỗộớờởỡợ"),
    ("oe", "œ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšș"),
    ("ss", "ß"),
    ("t", "ţťŧț"),
    ("th", "þ"),
    ("u", "ùúûüũūŭůűųưǔụủứừửữự"),
    ("w", "ŵẁẃẅ"),
    ("y", "ýÿŷỳỵỷỹ"),
    ("z", "źżž"),
];

/// Replaces letters with diacritics by ASCII letters. Combining marks are removed; unknown letters stay.
pub(super) fn to_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_mark = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    for c in text.chars().filter(|c| !is_mark(*c)) {
        match spelled(c) {
            Some(letters) if c.is_uppercase() => {
                let mut letters = letters.chars();
                out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                out.extend(letters);
            }
            Some(letters) => out.push_str(letters),
            None => out.push(c),
        }
    }
    out
}

fn spelled(c: char) -> Option<&'static str> {
    if c.is_ascii() {
        return None;
    }
    let lower = c.to_lowercase().next()?;
    let row = LETTERS
        .iter()
        .find(|(_, letters)| letters.contains([c, lower]));
    row.map(|(ascii, _)| *ascii)
}

#[cfg(test)]
mod tests {
    use super::to_ascii;

    #[test]
    fn diacritics_are_removed() {
        for (theirs, ours) in [
            ("été", "ete"),
            ("e\u{301}te\u{301}", "ete"),
            ("Ærø Straße", "Aero Strasse"),
            ("ŁÓDŹ Þór İ", "LODZ Thor I"),
            ("tiếng Việt", "tieng Viet"),
            ("файлы 文件", "файлы 文件"),
        ] {
            assert_eq!(to_ascii(theirs), ours);
        }
    }
}
