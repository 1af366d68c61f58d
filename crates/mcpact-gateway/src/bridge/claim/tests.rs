use std::sync::Arc;

use super::*;

fn client(session: &Arc<u8>) -> User {
    User::Client(Who::by(Arc::downgrade(session)))
}

/// What is asked outside of a call stays with the server, and so do roots where it does not say what it asks for;
/// only an instance that clients share without knowing it becomes one's.
#[test]
fn what_a_server_keeps() {
    use Method::{ElicitationCreate, RootsList};
    let sheet = [
        (
            SharingPolicy::SameAffinity,
            Occasion::Outside,
            RootsList,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            Occasion::Outside,
            ElicitationCreate,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            Occasion::Unclear,
            RootsList,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            Occasion::Unclear,
            ElicitationCreate,
            false,
        ),
        (
            SharingPolicy::SameAffinity,
            Occasion::Call,
            RootsList,
            false,
        ),
        (
            SharingPolicy::Exclusive,
            Occasion::Outside,
            RootsList,
            false,
        ),
        (SharingPolicy::All, Occasion::Outside, RootsList, false),
    ];
    for (sharing, occasion, method, expected) in sheet {
        let kept = is_kept(sharing, occasion, method);
        assert_eq!(kept, expected, "{sharing:?} {occasion:?} {method}");
    }
}

/// A connection is its client's from the first answer on, and nobody else's as long as it lasts.
#[test]
fn a_connection_is_ones() {
    let (ann, bob) = (Arc::new(1), Arc::new(2));
    let all = [client(&ann), client(&bob), User::Stranger, User::Nobody];
    let claim = Claim::default();
    let relations = |claim: &Claim| all.each_ref().map(|user| claim.relation(user));
    assert_eq!(relations(&claim), [Relation::Common; 4]);
    let who = Who::by(Arc::downgrade(&ann));
    assert!(claim.take(&who) && claim.take(&who), "it stays ann's");
    assert!(!claim.take(&Who::by(Arc::downgrade(&bob))));
    let (own, foreign, common) = (Relation::Own, Relation::Foreign, Relation::Common);
    assert_eq!(relations(&claim), [own, foreign, foreign, common]);
    assert!(claim.admits(&all[0]) && !claim.admits(&all[1]) && !claim.admits(&all[2]));
    drop(ann);
    assert_eq!(claim.relation(&all[1]), Relation::Left);
    assert!(!claim.admits(&all[1]), "what she has told is still there");
}

/// A client keeps what it has told as long as it is there and there is room for others.
#[test]
fn what_stands_in_the_way_is_let_go_of() {
    let sheet = [
        (Relation::Common, false, false),
        (Relation::Own, false, false),
        (Relation::Foreign, false, true),
        (Relation::Left, true, true),
    ];
    for (relation, with_room, without) in sheet {
        let found = [Space::Free, Space::Full].map(|space| relation.is_let_go(space));
        assert_eq!(found, [with_room, without], "{relation:?}");
    }
}
