//! Addresses that a server hands to a person: what to say about them before anything is opened.

use url::{Host, Url};

use super::elicitation::UrlRequest;
use super::shared::Icon;

/// What a person should know about an address before agreeing to open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlWarning {
    /// It is not an `http` or `https` address; it must not be opened.
    Scheme,
    /// It is not encrypted.
    NotEncrypted,
    /// Its name is written in Punycode, or in letters that look like others.
    Punycode,
    /// It carries a user name, which makes another host look like its own.
    UserInfo,
    /// It names a machine by number.
    Number,
}

impl UrlRequest {
    /// The host, to be shown apart from the rest; none when the address has none.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        Url::parse(&self.url).ok()?.host_str().map(str::to_owned)
    }

    /// What to warn about. Show the whole [`url`](Self::url) beside it, and open it only once the
    /// person agrees; this client never does so itself.
    #[must_use]
    pub fn warnings(&self) -> Vec<UrlWarning> {
        let Ok(url) = Url::parse(&self.url) else {
            return vec![UrlWarning::Scheme];
        };
        let mut found = Vec::new();
        match url.scheme() {
            "https" => {}
            "http" => found.push(UrlWarning::NotEncrypted),
            _ => found.push(UrlWarning::Scheme),
        }
        match url.host() {
            Some(Host::Domain(name)) if name.split('.').any(|part| part.starts_with("xn--")) => {
                found.push(UrlWarning::Punycode);
            }
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => found.push(UrlWarning::Number),
            Some(Host::Domain(_)) | None => {}
        }
        if !url.username().is_empty() || url.password().is_some() {
            found.push(UrlWarning::UserInfo);
        }
        found
    }
}

/// How long a picture inside of a message may be.
const DATA_LIMIT: usize = 512 * 1024;

/// The pictures that carry no programs.
const PICTURES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/jpg",
    "image/gif",
    "image/webp",
];

/// Why an icon must not be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IconFault {
    /// It is neither an `https:` nor a `data:` address.
    #[error("its address is neither `https:` nor `data:`")]
    Scheme,
    /// It comes from somewhere else than the server, which would learn who looks at it.
    #[error("it comes from another origin than its server")]
    Origin,
    /// Its address carries credentials.
    #[error("its address carries credentials")]
    Credentials,
    /// It is not one of the pictures that carry no programs.
    #[error("it is not a PNG, JPEG, GIF or WebP picture")]
    Kind,
    /// It is too large.
    #[error("it is larger than {DATA_LIMIT} characters")]
    Size,
}

impl Icon {
    /// Checks that the icon may be shown, or fetched without credentials and redirects, by a client of
    /// the server at this address; a server without an address may only bring pictures along.
    ///
    /// `2026-07-28 basic#icons`
    ///
    /// # Errors
    /// It must not, and why.
    pub fn check(&self, server: Option<&str>) -> Result<(), IconFault> {
        if let Some(data) = self.src.strip_prefix("data:") {
            let kind = data.split([';', ',']).next().unwrap_or_default();
            return match PICTURES
                .iter()
                .any(|known| kind.eq_ignore_ascii_case(known))
            {
                false => Err(IconFault::Kind),
                true if data.len() > DATA_LIMIT => Err(IconFault::Size),
                true => Ok(()),
            };
        }
        let url = Url::parse(&self.src).map_err(|_| IconFault::Scheme)?;
        if url.scheme() != "https" {
            return Err(IconFault::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(IconFault::Credentials);
        }
        if let Some(kind) = &self.mime_type
            && !PICTURES
                .iter()
                .any(|known| kind.eq_ignore_ascii_case(known))
        {
            return Err(IconFault::Kind);
        }
        let server = server.and_then(|server| Url::parse(server).ok());
        match server {
            Some(server) if server.origin() == url.origin() => Ok(()),
            Some(_) | None => Err(IconFault::Origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P23: what is ambiguous about an address is told, and its host is shown apart.
    #[test]
    fn addresses_are_warned_about() {
        use UrlWarning::{NotEncrypted, Number, Punycode, Scheme, UserInfo};
        for (url, expected) in [
            ("https://example.com/a?b=c", &[][..]),
            ("https://xn--pple-43d.com/", &[Punycode]),
            ("https://\u{430}pple.com/", &[Punycode]),
            ("https://a.xn--80ak6aa92e.com", &[Punycode]),
            ("http://example.com", &[NotEncrypted]),
            ("https://example.com@evil.example", &[UserInfo]),
            ("http://2130706433/", &[NotEncrypted, Number]),
            ("https://[::1]/", &[Number]),
            ("javascript:alert(1)", &[Scheme]),
            ("file:///etc/passwd", &[Scheme]),
            ("not an address", &[Scheme]),
        ] {
            let request = UrlRequest {
                url: url.to_owned(),
                ..UrlRequest::default()
            };
            assert_eq!(request.warnings(), expected, "{url}");
            assert_eq!(request.url, url, "shown as it came");
        }
        let request = UrlRequest {
            url: "https://example.com@evil.example/x".to_owned(),
            ..UrlRequest::default()
        };
        assert_eq!(request.host().as_deref(), Some("evil.example"));
    }

    /// H24: only pictures from safe places, of a limited size, without credentials, of the server's
    /// own origin.
    #[test]
    fn icons_come_from_safe_places() {
        let server = Some("https://example.com/mcp");
        let check = |src: &str| Icon::new(src).check(server);
        assert_eq!(check("https://example.com/i.png"), Ok(()));
        assert_eq!(check("data:image/png;base64,AAAA"), Ok(()));
        for src in [
            "http://example.com/i.png",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ftp://example.com/i.png",
            "ws://example.com",
            "app://x",
            "",
        ] {
            assert_eq!(check(src), Err(IconFault::Scheme), "{src}");
        }
        for src in [
            "https://evil.example/i.png",
            "https://example.com:8443/i.png",
        ] {
            assert_eq!(check(src), Err(IconFault::Origin), "{src}");
        }
        assert_eq!(
            check("https://u:p@example.com/i.png"),
            Err(IconFault::Credentials)
        );
        for src in [
            "data:text/html,<script>",
            "data:image/svg+xml,<svg/>",
            "data:,x",
        ] {
            assert_eq!(check(src), Err(IconFault::Kind), "{src}");
        }
        let large = format!("data:image/png;base64,{}", "A".repeat(DATA_LIMIT));
        assert_eq!(check(&large), Err(IconFault::Size));
        let local = Icon::new("https://example.com/i.png").check(None);
        assert_eq!(local, Err(IconFault::Origin), "a server on a pipe has none");
    }
}
