// Makes a server that somebody else wrote say where it listens, in the way of the servers here:
// `node --import ./say_origin.mjs SERVER`.

import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (...where) {
    this.once('listening', () => console.log(`http://127.0.0.1:${this.address().port}`));
    return listen.apply(this, where);
};
