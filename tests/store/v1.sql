-- The tables as version 1 made them, with two jobs. Frozen: databases like this are out there.
PRAGMA application_id = 1112691784;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs( id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, state INTEGER NOT NULL, submitted_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, ord INTEGER NOT NULL, file INTEGER NOT NULL, detached INTEGER NOT NULL DEFAULT 0, line INTEGER NOT NULL, key TEXT, name TEXT, env INTEGER NOT NULL, umask INTEGER NOT NULL, devices INTEGER NOT NULL, gpus INTEGER NOT NULL, vram_mib INTEGER NOT NULL, cpus INTEGER NOT NULL, mem_mib INTEGER NOT NULL, exclusive INTEGER NOT NULL, gpu_ids TEXT NOT NULL, priority INTEGER NOT NULL, oom_retries INTEGER NOT NULL, retries INTEGER NOT NULL, limit_ms INTEGER NOT NULL, grace_ms INTEGER NOT NULL, hold INTEGER NOT NULL, cancel INTEGER NOT NULL, requeue INTEGER NOT NULL, declared_mib INTEGER NOT NULL, oom_used INTEGER NOT NULL, retries_used INTEGER NOT NULL, misfires INTEGER NOT NULL, cancel_asked INTEGER NOT NULL, begin_us INTEGER NOT NULL, attempts INTEGER NOT NULL, cancelled_by TEXT, never_text TEXT, cwd TEXT, log TEXT, command TEXT, argv TEXT);
CREATE INDEX jobs_state ON jobs(state);
CREATE INDEX jobs_file ON jobs(file) WHERE file <> 0 AND detached = 0;
CREATE TABLE attempts( job INTEGER NOT NULL, number INTEGER NOT NULL, cards TEXT NOT NULL, peaks_mib TEXT NOT NULL, vram_mib INTEGER NOT NULL, shepherd_pid INTEGER NOT NULL, started_us INTEGER NOT NULL, util_sum INTEGER NOT NULL, util_count INTEGER NOT NULL, warned INTEGER NOT NULL, outcome INTEGER NOT NULL, code INTEGER NOT NULL, signal INTEGER NOT NULL, errno INTEGER NOT NULL, oom INTEGER NOT NULL, ended_us INTEGER NOT NULL, run_ms INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, max_rss_kib INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(job, number)) WITHOUT ROWID;
CREATE TABLE envs(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX envs_hash ON envs(hash);
CREATE TABLE files(id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, path TEXT NOT NULL, UNIQUE(uid, path));
CREATE TABLE events(seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL, job INTEGER NOT NULL, file INTEGER NOT NULL, json TEXT NOT NULL);
INSERT INTO meta VALUES('token', '0123456789abcdef'), ('boot_id', ''), ('clean', '1'),
  ('next_job', '3'), ('next_order', '3');
INSERT INTO jobs(id, uid, state, submitted_us, ended_us, ord, file, line, key, name, env, umask,
  devices, gpus, vram_mib, cpus, mem_mib, exclusive, gpu_ids, priority, oom_retries, retries,
  limit_ms, grace_ms, hold, cancel, requeue, declared_mib, oom_used, retries_used, misfires,
  cancel_asked, begin_us, attempts, cwd, command) VALUES
  (1, 1000, 6, 10, 20, 1, 4, 2, 'abc#1', 'old', 0, 18, 0, 1, 8000, 0, 0, 0, '1', 5, 2, 0, 60000,
   10000, 0, 0, 0, 8000, 0, 0, 0, 0, 0, 1, '/w', 'python a.py'),
  (2, 1000, 0, 11, 0, 2, 0, 0, NULL, NULL, 0, 18, 0, 2, 0, 0, 0, 0, '', 0, 0, 0, 0, 10000, 0, 0,
   0, 0, 0, 0, 0, 0, 0, 0, '/w', 'python b.py');
INSERT INTO attempts VALUES(1, 1, '1:GPU-b', '7000', 8000, 4711, 12, 0, 0, 0, 1, 0, 0, 0, 0, 20,
  8, 5, 100, '');
PRAGMA user_version = 1;
