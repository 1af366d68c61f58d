use std::sync::Arc;

use super::*;

fn client(session: &Arc<u8>) -> ConnectionUser {
    ConnectionUser::Client(ClientRef::by(Arc::downgrade(session)))
}

/// A server may store the answers to questions outside a call, and roots if the question names no call. Only a connection
/// of clients with the same affinity gets an owner by that.
#[test]
fn server_may_store_answers_beyond_the_call() {
    use Method::{ElicitationCreate, RootsList};
    let cases = [
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
    for (sharing, context, method, expected) in cases {
        let kept = is_kept(sharing, context, method);
        assert_eq!(kept, expected, "{sharing:?} {context:?} {method}");
    }
}

/// A connection has the same owner for its whole life, also after the owner has disconnected.
#[test]
fn connection_keeps_its_first_owner() {
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
        "the owner stays"
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
        "the server may have stored her answer"
    );
}

/// The connection of a connected owner is released only without capacity for another one.
#[test]
fn connections_of_others_are_released() {
    let cases = [
        (OwnershipRelation::Common, false, false),
        (OwnershipRelation::Own, false, false),
        (OwnershipRelation::Foreign, false, true),
        (OwnershipRelation::Left, true, true),
    ];
    for (relation, with_capacity, without) in cases {
        let found = [true, false].map(|has_capacity| relation.is_released(has_capacity));
        assert_eq!(found, [with_capacity, without], "{relation:?}");
    }
}

/// One client is the only user until another client makes a call, also one without a session.
#[test]
fn only_user_is_known_until_another_calls() {
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
