//! Safety checks for URLs that a server shows to a user.

use url::{Host, Url};

use super::content::Icon;
use super::elicitation::UrlRequest;

/// Warning about a URL before a user opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlWarning {
    /// Not an `http` or `https` URL; it must not be opened.
    Scheme,
    /// Not encrypted.
    NotEncrypted,
    /// Punycode or non-ASCII host name, which may imitate another one.
    Punycode,
    /// User name in the URL, which may imitate a host name.
    UserInfo,
    /// IP address as host.
    IpAddress,
}

impl UrlRequest {
    /// Returns the host, to be shown separately; none without a host.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        Url::parse(&self.url).ok()?.host_str().map(str::to_owned)
    }

    /// Returns the warnings. Show the whole [`url`](Self::url) with them, and open it only with the user's consent;
    /// this client never opens URLs itself.
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
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => found.push(UrlWarning::IpAddress),
            Some(Host::Domain(_)) | None => {}
        }
        if !url.username().is_empty() || url.password().is_some() {
            found.push(UrlWarning::UserInfo);
        }
        found
    }
}

/// Maximum length of a `data:` image.
const DATA_LIMIT: usize = 512 * 1024;

/// Image types without active content.
const IMAGE_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/jpg",
    "image/gif",
    "image/webp",
];

/// Reason not to show an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IconError {
    /// Neither an `https:` nor a `data:` URL.
    #[error("the URL is neither `https:` nor `data:`")]
    Scheme,
    /// Another origin than the server, which could track users.
    #[error("the URL has another origin than the server")]
    Origin,
    /// Credentials in the URL.
    #[error("the URL contains credentials")]
    Credentials,
    /// Not an accepted image type.
    #[error("not a PNG, JPEG, GIF or WebP image")]
    Kind,
    /// Too large.
    #[error("larger than {DATA_LIMIT} characters")]
    Size,
}

impl Icon {
    /// Checks that the icon may be shown, or fetched without credentials and redirects, by a client of the server at
    /// this URL. Servers without a URL may only use `data:` icons.
    ///
    /// `2026-07-28 basic#icons`
    ///
    /// # Errors
    /// The reason not to show it.
    pub fn check(&self, server: Option<&str>) -> Result<(), IconError> {
        if let Some(data) = self.src.strip_prefix("data:") {
            let kind = data.split([';', ',']).next().unwrap_or_default();
            return match is_image(kind) {
                false => Err(IconError::Kind),
                true if data.len() > DATA_LIMIT => Err(IconError::Size),
                true => Ok(()),
            };
        }
        let url = Url::parse(&self.src).map_err(|_| IconError::Scheme)?;
        if url.scheme() != "https" {
            return Err(IconError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(IconError::Credentials);
        }
        if self
            .mime_type
            .as_deref()
            .is_some_and(|kind| !is_image(kind))
        {
            return Err(IconError::Kind);
        }
        let server = server.and_then(|server| Url::parse(server).ok());
        match server {
            Some(server) if server.origin() == url.origin() => Ok(()),
            Some(_) | None => Err(IconError::Origin),
        }
    }
}

fn is_image(kind: &str) -> bool {
    let mut known = IMAGE_TYPES.iter();
    known.any(|known| kind.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P23: ambiguous URLs produce warnings, and the host is shown separately.
    #[test]
    fn ambiguous_urls_produce_warnings() {
        use UrlWarning::{IpAddress, NotEncrypted, Punycode, Scheme, UserInfo};
        for (url, expected) in [
            ("https://example.com/a?b=c", &[][..]),
            ("https://xn--pple-43d.com/", &[Punycode]),
            ("https://\u{430}pple.com/", &[Punycode]),
            ("https://a.xn--80ak6aa92e.com", &[Punycode]),
            ("http://example.com", &[NotEncrypted]),
            ("https://example.com@evil.example", &[UserInfo]),
            ("http://2130706433/", &[NotEncrypted, IpAddress]),
            ("https://[::1]/", &[IpAddress]),
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

    /// H24: icons are limited to safe types, sizes and URLs of the server's own origin, without credentials.
    #[test]
    fn unsafe_icons_are_rejected() {
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
            assert_eq!(check(src), Err(IconError::Scheme), "{src}");
        }
        for src in [
            "https://evil.example/i.png",
            "https://example.com:8443/i.png",
        ] {
            assert_eq!(check(src), Err(IconError::Origin), "{src}");
        }
        assert_eq!(
            check("https://u:p@example.com/i.png"),
            Err(IconError::Credentials)
        );
        for src in [
            "data:text/html,<script>",
            "data:image/svg+xml,<svg/>",
            "data:,x",
        ] {
            assert_eq!(check(src), Err(IconError::Kind), "{src}");
        }
        let large = format!("data:image/png;base64,{}", "A".repeat(DATA_LIMIT));
        assert_eq!(check(&large), Err(IconError::Size));
        let local = Icon::new("https://example.com/i.png").check(None);
        assert_eq!(local, Err(IconError::Origin), "a server on a pipe has none");
    }
}
