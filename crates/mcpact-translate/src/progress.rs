//! Progress of one request, over all the rounds that it takes.

use alloc::borrow::Cow;
use alloc::string::ToString;

use mcpact_spec::{Method, Revision};

use crate::shape::members::{Members, or_same};
use crate::shape::{ShapeError, adapt_params};

/// Progress reported to a client for one request; it only grows.
///
/// A server that is asked again begins at zero again. What it reports then is added to what was
/// reached before, so that a client which waits for a sign of life keeps getting one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    told: Option<f64>,
    before: f64,
}

impl Progress {
    /// The request is sent again.
    pub const fn next_round(&mut self) {
        if let Some(told) = self.told {
            self.before = told;
        }
    }

    /// The parameters of a report, as a client of this revision gets them; none when it has been
    /// told as much already, or when there is no progress in them.
    ///
    /// # Errors
    /// The parameters are malformed.
    pub fn report<'a>(
        &mut self,
        raw: &'a str,
        client: Revision,
    ) -> Result<Option<Cow<'a, str>>, ShapeError> {
        let mut params = Members::of_body(raw)?;
        let number = |key: &str, params: &Members<'_>| params.get(key)?.parse::<f64>().ok();
        let Some(reached) = number("progress", &params).map(|own| self.before + own) else {
            return Ok(None);
        };
        if self.told.is_some_and(|told| reached <= told) {
            return Ok(None);
        }
        self.told = Some(reached);
        if self.before > 0.0 {
            params.set("progress", reached.to_string());
            if let Some(total) = number("total", &params) {
                params.set("total", (self.before + total).to_string());
            }
        }
        Ok(Some(match or_same(params.finish(), raw) {
            Cow::Borrowed(raw) => adapt_params(Method::Progress, raw, client)?,
            Cow::Owned(raw) => {
                Cow::Owned(adapt_params(Method::Progress, &raw, client)?.into_owned())
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_06_18};
    use alloc::vec::Vec;

    /// BA-18: what a client sees grows, also when the server starts over.
    #[test]
    fn progress_grows_over_rounds() {
        let mut progress = Progress::default();
        let mut seen = Vec::new();
        for round in [&["0.25", "0.5", "0.5", "0.4"][..], &["0.125", "0", "1"]] {
            for own in round {
                let raw = alloc::format!(r#"{{"progressToken":1,"progress":{own},"total":1}}"#);
                if let Some(told) = progress.report(&raw, V2025_06_18).unwrap() {
                    seen.push(told.into_owned());
                }
            }
            progress.next_round();
        }
        assert_eq!(
            seen,
            [
                r#"{"progressToken":1,"progress":0.25,"total":1}"#,
                r#"{"progressToken":1,"progress":0.5,"total":1}"#,
                r#"{"progressToken":1,"progress":0.625,"total":1.5}"#,
                r#"{"progressToken":1,"progress":1.5,"total":1.5}"#,
            ]
        );
    }

    /// XR-09: a first client gets no message.
    #[test]
    fn reports_follow_the_revision() {
        let raw = r#"{"progressToken":1, "progress":1e0,"message":"m"}"#;
        let told = Progress::default().report(raw, V2025_06_18).unwrap();
        assert!(matches!(told, Some(Cow::Borrowed(same)) if same == raw));
        let told = Progress::default().report(raw, V2024_11_05).unwrap();
        assert_eq!(told.unwrap(), r#"{"progressToken":1,"progress":1e0}"#);
        for none in ["{}", r#"{"progress":"much"}"#] {
            assert_eq!(Progress::default().report(none, V2025_06_18), Ok(None));
        }
    }
}
