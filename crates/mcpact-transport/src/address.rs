//! URLs without secrets, for logs and messages.

/// Returns a URL without what may be secret: credentials, query and fragment.
#[must_use]
pub fn shown(address: &str) -> String {
    let (place, rest) = match address.find(['?', '#']) {
        Some(at) => (&address[..at], "?…"),
        None => (address, ""),
    };
    let (scheme, place) = place.split_once("://").unwrap_or(("", place));
    let host_end = place.find('/').unwrap_or(place.len());
    let place = match place[..host_end].rfind('@') {
        Some(at) => format!("…{}", &place[at..]),
        None => place.to_owned(),
    };
    match scheme {
        "" => format!("{place}{rest}"),
        scheme => format!("{scheme}://{place}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    /// Credentials and the query are removed.
    #[test]
    fn secrets_of_an_address_are_left_out() {
        assert_eq!(shown("http://127.0.0.1:1/mcp"), "http://127.0.0.1:1/mcp");
        assert_eq!(
            shown("https://me:pw@host/a@b?key=s#f"),
            "https://…@host/a@b?…"
        );
        assert_eq!(shown("https://host?key=s"), "https://host?…");
        assert_eq!(shown("me:pw@host"), "…@host");
        assert_eq!(shown(""), "");
    }
}
