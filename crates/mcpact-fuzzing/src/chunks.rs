//! A stream, a limit and a way to cut the stream, all from the same bytes.

/// The first byte is the limit, the second chooses the cuts, the rest is the stream.
pub(crate) fn split(data: &[u8]) -> Option<(usize, u8, &[u8])> {
    let (&[limit, cuts], stream) = data.split_first_chunk::<2>()?;
    Some((usize::from(limit), cuts, stream))
}

/// Cuts a stream into pieces of varying length, some of them empty; the same cuts for the same seed.
pub(crate) fn cut(stream: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut state = u32::from(seed);
    let mut rest = stream;
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The high bits of a linear congruential generator are its good ones.
        let wanted = (state >> 24) as usize % (usize::from(seed % 32) + 2);
        let (piece, after) = rest.split_at(wanted.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
