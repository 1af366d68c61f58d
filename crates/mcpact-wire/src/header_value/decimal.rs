/// A JSON number, compared by value and never rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads RFC 8259's `number`; an exponent beyond 32 bits is nothing to compute with.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Self::parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let whole_is_valid = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let fraction_is_valid = fraction.is_none_or(is_digits);
        (whole_is_valid && fraction_is_valid).then(|| Self {
            negative,
            whole: whole.as_bytes(),
            fraction: fraction.unwrap_or_default().as_bytes(),
            exponent: exponent.into(),
        })
    }

    fn parse_exponent(text: &str) -> Option<i32> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        is_digits(digits).then(|| text.parse().ok()).flatten()
    }

    pub(super) fn is_negative(self) -> bool {
        self.negative && !self.is_zero()
    }

    /// The absolute value, if it is an integer that fits.
    pub(super) fn magnitude(self) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        let places = usize::try_from(self.point()).ok()?;
        // u64 has at most 20 digits; this also bounds the loop against a huge exponent.
        if places > 20 || self.significant().skip(places).any(|digit| digit != b'0') {
            return None;
        }
        self.significant()
            .chain(core::iter::repeat(b'0'))
            .take(places)
            .try_fold(0_u64, |sum, digit| {
                sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
    }

    fn is_zero(self) -> bool {
        self.digits().all(|digit| digit == b'0')
    }

    fn digits(self) -> impl Iterator<Item = u8> + 'a {
        self.whole.iter().chain(self.fraction).copied()
    }

    fn leading_zeros(self) -> usize {
        self.digits().take_while(|&digit| digit == b'0').count()
    }

    fn significant(self) -> impl Iterator<Item = u8> + 'a {
        self.digits().skip(self.leading_zeros())
    }

    /// Number of significant digits before the decimal point; negative for zeros after it.
    fn point(self) -> i64 {
        let width = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        (width(self.whole.len()) - width(self.leading_zeros())).saturating_add(self.exponent)
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.is_zero() || other.is_zero() {
            return self.is_zero() && other.is_zero();
        }
        let width = self.significant().count().max(other.significant().count());
        let padded = |number: Self| {
            number
                .significant()
                .chain(core::iter::repeat(b'0'))
                .take(width)
        };
        self.negative == other.negative
            && self.point() == other.point()
            && padded(*self).eq(padded(*other))
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
