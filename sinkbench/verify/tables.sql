-- `due` is the end of what must be stored; what follows may be. `next` is the first offset that was not read.
CREATE TABLE IF NOT EXISTS parts (part INTEGER PRIMARY KEY, start BIGINT, due BIGINT, next BIGINT);
CREATE TABLE IF NOT EXISTS topic (k1 UBIGINT, k2 UBIGINT, content UBIGINT, part BIGINT, pos BIGINT, hour BIGINT);
CREATE TABLE IF NOT EXISTS target (k1 UBIGINT, k2 UBIGINT, content UBIGINT);
CREATE TABLE IF NOT EXISTS state (name VARCHAR PRIMARY KEY, value VARCHAR);
