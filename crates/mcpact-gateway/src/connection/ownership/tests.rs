use std::sync::Arc;

use super::*;

fn client(session: &Arc<u8>) -> ConnectionUser {
    ConnectionUser::Client(ClientRef::by(Arc::downgrade(session)))
}

/// What is asked outside of a call stays with the server, and so do roots where it does not say what it asks for;
/// only an instance that clients share without knowing it becomes one's.
#[test]
fn what_a_server_keeps() {
    use Method::{ElicitationCreate, RootsList};
    let sheet = [
        (
            SharingPolicy::SameAffinity,
            QuestionContext::Outside,
            RootsList,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            QuestionContext::Outside,
            ElicitationCreate,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            QuestionContext::Unclear,
            RootsList,
            true,
        ),
        (
            SharingPolicy::SameAffinity,
            QuestionContext::Unclear,
            ElicitationCreate,
            false,
        ),
        (
            SharingPolicy::SameAffinity,
            QuestionContext::Call,
            RootsList,
            false,
        ),
        (
            SharingPolicy::Exclusive,
            QuestionContext::Outside,
            RootsList,
            false,
        ),
        (
            SharingPolicy::All,
            QuestionContext::Outside,
            RootsList,
            false,
        ),
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
    let all = [
        client(&ann),
        client(&bob),
        ConnectionUser::Stranger,
        ConnectionUser::Gateway,
    ];
    let ownership = Ownership::default();
    let relations = |ownership: &Ownership| all.each_ref().map(|user| ownership.relation(user));
    assert_eq!(relations(&ownership), [OwnershipRelation::Common; 4]);
    let who = ClientRef::by(Arc::downgrade(&ann));
    assert!(
        ownership.take(&who) && ownership.take(&who),
        "it stays ann's"
    );
    assert!(!ownership.take(&ClientRef::by(Arc::downgrade(&bob))));
    let (own, foreign, common) = (
        OwnershipRelation::Own,
        OwnershipRelation::Foreign,
        OwnershipRelation::Common,
    );
    assert_eq!(relations(&ownership), [own, foreign, foreign, common]);
    assert!(ownership.admits(&all[0]) && !ownership.admits(&all[1]) && !ownership.admits(&all[2]));
    drop(ann);
    assert_eq!(ownership.relation(&all[1]), OwnershipRelation::Left);
    assert!(
        !ownership.admits(&all[1]),
        "what she has told is still there"
    );
}

/// A client keeps what it has told as long as it is there and there is room for others.
#[test]
fn what_stands_in_the_way_is_let_go_of() {
    let sheet = [
        (OwnershipRelation::Common, false, false),
        (OwnershipRelation::Own, false, false),
        (OwnershipRelation::Foreign, false, true),
        (OwnershipRelation::Left, true, true),
    ];
    for (relation, with_room, without) in sheet {
        let found = [true, false].map(|has_capacity| relation.is_released(has_capacity));
        assert_eq!(found, [with_room, without], "{relation:?}");
    }
}

/// One client counts as the only user until another one makes a call, also one without a session.
#[test]
fn the_only_one_is_known() {
    let (ann, bob) = (Arc::new(1), Arc::new(2));
    for other in [client(&bob), ConnectionUser::Stranger] {
        let mut users = ConnectionUsers::default();
        users.add(&ConnectionUser::Gateway);
        assert!(matches!(users, ConnectionUsers::None));
        for user in [client(&ann), ConnectionUser::Gateway, client(&ann)] {
            users.add(&user);
            let who = ClientRef::by(Arc::downgrade(&ann));
            assert!(matches!(&users, ConnectionUsers::One(only) if *only == who));
        }
        users.add(&other);
        users.add(&client(&ann));
        assert!(matches!(users, ConnectionUsers::Several), "{other:?}");
    }
}
