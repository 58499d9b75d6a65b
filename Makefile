# The project's two roads: see it work, and know that it works.

CARGO ?= cargo
INPUT ?=
SCALE ?= 1
ONLY ?=
MINUTES ?=
ROUNDS ?= 20
SEED ?= 1
SEEDS ?= 300
LAYOUT ?=
TORTURE_DIR ?= /dev/shm
DRAW ?=
RIVALS_PACKAGES := libkyotocabinet-dev libclang-dev liburing-dev libsparsehash-dev libtbb-dev python3-venv pkg-config cmake g++ make kmc jellyfish
RIVALS_VENV := bench/rivals/target/venv
RIVALS_WHEELS := bench/rivals/groups/python/requirements.txt

PYTHON ?= python3
PYTHON_VENV := target/python
PYTEST ?=
PYTHON_FIGURES := target/python-figures

MVN ?= mvn
JAVA ?= java
RECORDS ?= 2000000
# Arguments for Maven.
JVM ?=
# As dev.forebay.Library names this platform.
JVM_PLATFORM := $(shell uname -sm | tr 'A-Z ' 'a-z-' | sed 's/darwin/macos/;s/arm64/aarch64/;s/amd64/x86_64/')$(shell ls /lib/ld-musl-*.so.1 >/dev/null 2>&1 && echo -musl)
JVM_NATIVES := target/jvm/natives/dev/forebay/natives/$(JVM_PLATFORM)

INSTALL_ROOT ?=
PREFIX ?= /usr/local

.PHONY: help install install-c sanitize-c demo answers test python-test python-figures spark-groups-test server-test server-attack server-kill jvm-test jvm-jar demo-spark spark-suites spark-kill spark-bench spark-groups-bench simulate fuzz planted invariants miri shuttle audit packages torture figures data wheels rivals format lint demo-streams streams-figures streams-jar spark-jar spark-4.3-jar spark-4.3-test

help:
	@echo 'make demo              load real text, read it back, verify it, and report rates and amplifications'
	@echo 'make demo INPUT=FILE   the same with the lines of your own file'
	@echo 'make figures           measure this machine into docs/figures.md (about three hours; SCALE=0.1 for less)'
	@echo 'make figures ONLY=A,B  only these parts; a part that was interrupted goes on where it was; DRAW=1 draws what is there'
	@echo 'make figures ONLY=steady   the steady state beside other engines (45 minutes); MINUTES=10 for its open loops'
	@echo 'make data              fetch the real data of the part "applications" (400 MB, from Debian packages)'
	@echo 'make wheels            install the query engines of the part "columns", Python wheels in a folder of their own'
	@echo 'make server-test       clients of Redis in several languages, and random commands beside redis-server; ROUNDS=N SEED=N'
	@echo 'make server-attack     clients that mean harm, with what memory the server took'
	@echo 'make server-kill       kill -9 under load, and ask for all that was acknowledged; COUNT=N'
	@echo 'make rivals            build the benchmarks of other engines, tables and query engines; installs what they need (half an hour)'
	@echo 'make install           build and install the command, which then tells its commit (INSTALL_ROOT=DIR: not for Cargo)'
	@echo 'make install-c         build and install what programs in C need, below PREFIX=/usr/local'
	@echo 'make sanitize-c        the C face under the sanitizers of a C compiler'
	@echo 'make answers           every function over random tables in files of every kind, held against DuckDB: SEEDS=300 from SEED=1 on'
	@echo 'make python-test       build the Python package into an environment of its own, and test it (PYTEST=ARGUMENTS for pytest)'
	@echo 'make python-figures    build the Python package as it is released, and measure it beside plyvel, lmdb, rocksdict and DuckDB'
	@echo 'make spark-groups-test  the group-by on Spark by the Python package; installs PySpark, and needs a JVM'
	@echo 'make jvm-test          build the Java package, and test it (JVM=ARGUMENTS for Maven, such as -Dtest=ModelTest)'
	@echo 'make jvm-jar           build the jar of the Java package, with the native library of this platform'
	@echo 'make spark-jar         build the jars of the state store for Spark 4.0, 4.1 and 4.2, and that of the engine'
	@echo 'make spark-4.3-jar     the jar for Spark 4.3, built against its package for Python, which it installs (SPARK_LATEST=4.3.0)'
	@echo 'make spark-4.3-test    the tests of that one, and a stream by PySpark 4.3'
	@echo 'make streams-jar       build the jar of the stores for Kafka Streams, and that of the engine'
	@echo 'make demo-spark        a stream of counts over a folder by PySpark, its state in Forebay (INPUT=FOLDER)'
	@echo 'make spark-suites      Spark'"'"'s own streaming suites on our state store and on RocksDB'"'"'s (MINOR=4.1; an hour)'
	@echo 'make spark-kill        kill a stream of counts again and again, and compare it with a batch (KILLS=10)'
	@echo 'make spark-bench       batches, commits, uploads and restarts beside RocksDB'"'"'s provider (KEYS=2400000 UPDATES=100000 BATCHES=40 MEMORY_MIB=64 STORES=1)'
	@echo 'make spark-groups-bench  GroupBy of a Parquet file beside Spark'"'"'s own groupBy (ROWS=20000000 GROUPS=2500000)'
	@echo 'make demo-streams      count the words of this project, or of INPUT=FILE, by Kafka Streams on our stores; no broker'
	@echo 'make streams-figures   measure our stores beside those that Kafka Streams has (RECORDS=2000000)'
	@echo 'make torture           kills, readers, power cuts, full disks and faults on this machine: ROUNDS=20 of each for each layout'
	@echo 'make simulate          the whole engine on a disk that loses power, and threads: SEEDS=300 histories from SEED=1 on'
	@echo 'make fuzz              every structure against a model, every format damaged: SEEDS=300 of each from SEED=1 on; ONLY=NAME for one'
	@echo 'make planted           plant bugs that were mended, and see that the simulation finds them; ONLY=NAME for one'
	@echo 'make invariants        the simulation with checks that cost too much elsewhere, on rare roads; SEEDS=300 SEED=1'
	@echo 'make miri              the unsafe code, and what stands below it, under Miri (a nightly toolchain, which it completes)'
	@echo 'make shuttle           locks and wakes under a scheduler that draws interleavings'
	@echo 'make audit             licences and advisories of what the build takes, by cargo-deny'
	@echo 'make packages          package every crate that could be published, and build each from its package'
	@echo 'make test              format, lints and every test, as continuous integration runs them'

# Everything has a count; `power` and `full` mount a small disk of their own and need root.
torture:
	$(CARGO) build --profile sim --package forebay-torture
	for campaign in kill readers power full faults; do \
	    target/sim/torture $$campaign --rounds $(ROUNDS) --seed $(SEED) --dir $(TORTURE_DIR) $(if $(LAYOUT),--layout $(LAYOUT)) || exit; \
	done

# The commit is told where there is one; a build from a package has none.
install:
	FOREBAY_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null) $(CARGO) install --locked --path crates/cli $(if $(INSTALL_ROOT),--root '$(INSTALL_ROOT)')

# Only the static library is built by Cargo, so that it is optimised across crates; the script links the others from it.
install-c:
	$(CARGO) rustc --locked --release --package forebay-c --lib --crate-type staticlib
	sh crates/c/install/install.sh target/release/libforebay_c.a '$(abspath $(PREFIX))'

sanitize-c:
	$(CARGO) test --package forebay-c --test it -- sanitized

demo:
	$(CARGO) build --release --package forebay-cli --package xtask
	@$(CARGO) run --quiet --release --package xtask -- demo $(if $(INPUT),'$(abspath $(INPUT))')

# Where a program of other engines was built before, it is brought up to date.
figures:
	$(CARGO) build --release --package forebay-cli --package forebay-campaign --package forebay --bins --example image_neighbours --example memory_campaign
	@for program in forebay-bench-rivals forebay-bench-groups; do \
	    if [ -z "$(DRAW)" ] && [ -f bench/rivals/target/release/$$program ]; then \
	        (cd bench/rivals && $(CARGO) build --release --package $$program) || exit; fi; \
	done
	@$(CARGO) run --quiet --release --package forebay-campaign -- figures scale=$(SCALE) $(if $(ONLY),only=$(ONLY)) $(if $(MINUTES),minutes=$(MINUTES)) $(if $(DRAW),draw)

# Unpacked, not installed. What is there is kept.
data:
	@$(CARGO) run --quiet --release --package forebay-campaign -- data

# DuckDB, Polars and others, in an environment of Python's that nothing else uses.
wheels:
	python3 -m venv $(RIVALS_VENV)
	$(RIVALS_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $(RIVALS_WHEELS)

# Golden files for `make test`: answers.py golden crates/cli/tests/data/answers/random
answers: wheels
	$(CARGO) build --release --package forebay-cli
	$(RIVALS_VENV)/bin/python -B bench/rivals/groups/python/answers.py check target/release/forebay target/answers $(SEED) $(SEEDS)

# Debian's packages, where one is missing; Python's wheels; then, from sources that Cargo brings, the engines themselves.
rivals:
	@missing=$$(for package in $(RIVALS_PACKAGES); do \
	    dpkg-query --show --showformat='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; \
	done); \
	if [ -n "$$missing" ]; then \
	    sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	    $$sudo apt-get update && $$sudo apt-get install --yes --no-install-recommends $$missing; \
	fi
	@$(MAKE) --no-print-directory wheels
	cd bench/rivals && $(CARGO) build --release --workspace

simulate:
	$(CARGO) run --profile sim --package forebay-sim -- --seeds $(SEEDS) --first $(SEED)
	$(CARGO) run --profile sim --package forebay-sim -- --threads 100 --first $(SEED)

# One fuzzer for each structure and format; first of all one that must find what is wrong.
fuzz:
	$(CARGO) run --profile sim --package forebay-fuzz -- --seeds $(SEEDS) --first $(SEED) $(if $(ONLY),--only $(ONLY))

# Bugs that were mended are planted again, one after the other: the simulation must find each.
planted:
	RUSTFLAGS='--cfg planted' $(CARGO) run --profile sim --package forebay-sim --target-dir target/planted -- --planted $(if $(ONLY),$(ONLY),all)

# References are counted from scratch after each edit, trees are checked, memory that is given back is scrambled; and
# what happens now and then happens often.
invariants:
	RUSTFLAGS='--cfg invariants' $(CARGO) run --profile sim --package forebay-sim --target-dir target/invariants -- --seeds $(SEEDS) --first $(SEED)

# The tests of the kernels are short; of the base those are left out that are not. The lines of filters are searched in
# ways that depend on the processor, and Miri has those that it is compiled for.
MIRI = MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=3 $(CARGO) +nightly miri test --lib

miri:
	rustup component add --toolchain nightly miri rust-src
	$(MIRI) --target-dir target/miri --package forebay-env -- kernel:: page_frames::
	RUSTFLAGS='-C target-feature=+popcnt,+lzcnt,+bmi1,+bmi2,+avx2,+aes,+vaes' \
	    $(MIRI) --target-dir target/miri-features --package forebay-store -- filter::kernel::
	$(MIRI) --target-dir target/miri --package forebay-base -- --skip digest::tests::repeats --skip sort::tests::

shuttle:
	RUSTFLAGS='--cfg shuttle' $(CARGO) test --target-dir target/shuttle --package forebay-env --lib

audit:
	@$(CARGO) deny --version >/dev/null 2>&1 || { \
	    echo 'cargo-deny is not installed: cargo install --locked cargo-deny' >&2; exit 1; }
	$(CARGO) deny check

# What is not for users.
PRIVATE := forebay-c forebay-jni forebay-python forebay-testkit forebay-sim forebay-fuzz forebay-torture forebay-campaign xtask
packages:
	$(CARGO) package --workspace $(PRIVATE:%=--exclude %) --target-dir target/packages

test: format lint
	$(CARGO) test --workspace
	@if $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	    then if $(MAKE) --no-print-directory $(PYTHON_VENV); then $(MAKE) --no-print-directory python-test; \
	        else echo 'skipped: the Python package, as what its tests need could not be installed' >&2; fi; \
	    else echo 'skipped: the Python package, as there is no Python 3.11 or later with venv (PYTHON=)' >&2; fi
	@if $(MVN) --version >/dev/null 2>&1 && javac --release 17 --version >/dev/null 2>&1; \
	    then if $(MVN) --quiet --batch-mode --file java/pom.xml dependency:resolve -pl core >/dev/null 2>&1; \
	        then if $(MVN) --quiet --batch-mode dependency:get -Dartifact=org.apache.spark:spark-sql_2.13:4.1.1 >/dev/null 2>&1; \
	            then $(MAKE) --no-print-directory jvm-test; \
	            else echo 'skipped: the state store of Spark, as Spark could not be fetched' >&2; \
	                $(MAKE) --no-print-directory jvm-test JVM='-pl core $(JVM)'; fi; \
	        else echo 'skipped: the Java package, as what its tests need could not be fetched' >&2; fi; \
	    else echo 'skipped: the Java package, as there is no Maven with a JDK 17 or later (MVN=)' >&2; fi

# An environment that nothing else uses.
$(PYTHON_VENV): python/tests/requirements.txt
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Built by Maturin.
python-test: $(PYTHON_VENV)
	VIRTUAL_ENV='$(abspath $(PYTHON_VENV))' PATH='$(abspath $(PYTHON_VENV))/bin':"$$PATH" \
	    $(PYTHON_VENV)/bin/maturin develop --locked --quiet
	$(PYTHON_VENV)/bin/pytest --quiet $(PYTEST)
	$(PYTHON_VENV)/bin/mypy python/forebay python/tests
	$(PYTHON_VENV)/bin/python -m mypy.stubtest forebay._forebay --mypy-config-file pyproject.toml

# PySpark 4, and what it needs of the JVM, is not among what all tests need.
spark-groups-test: $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check 'pyspark>=4.0,<5' pandas
	$(MAKE) --no-print-directory python-test PYTEST=python/tests/test_spark.py

# The last of them at a quarter of the memory that DuckDB takes without a limit.
python-figures:
	$(PYTHON) -m venv $(PYTHON_FIGURES)
	$(PYTHON_FIGURES)/bin/pip install --quiet --disable-pip-version-check . --requirement bench/python/requirements.txt
	$(PYTHON_FIGURES)/bin/python bench/python/puts.py --dir target
	$(CARGO) build --release --package forebay --features arrow --example get_rate --example word_rate
	$(PYTHON_FIGURES)/bin/python bench/python/gets.py --dir target --rust target/release/examples/get_rate
	$(PYTHON_FIGURES)/bin/python bench/python/words.py --dir target --rust target/release/examples/word_rate
	$(PYTHON_FIGURES)/bin/python bench/python/words.py --dir target --limit-mib 100

# Clients of Redis, and replies held against those of a redis-server, where there is one.
SERVER_VENV := target/server-clients
server-test:
	$(CARGO) build --package forebay-cli
	test -x $(SERVER_VENV)/bin/python || $(PYTHON) -m venv $(SERVER_VENV)
	$(SERVER_VENV)/bin/pip install --quiet --disable-pip-version-check 'redis>=6'
	crates/server/tests/clients/run.sh $(SERVER_VENV)/bin/python target/debug/forebay $(ROUNDS) $(SEED)

# Clients that mean harm, and kills under load: COUNT rounds of them.
COUNT ?= 1
server-attack server-kill: server-%:
	$(CARGO) build --package forebay-cli
	$(PYTHON) crates/server/tests/clients/$*.py --forebay target/debug/forebay --count $(COUNT) --seed $(SEED)

# Maven finds the native library where it would find those of all platforms. Tests make many small files: in memory, if
# there is such a place.
JVM_TMPDIR := $(if $(wildcard /dev/shm/.),-Djvm.tmpdir=/dev/shm)
JVM_DEBUG = $(CARGO) build --locked --package forebay-jni && mkdir -p $(JVM_NATIVES) \
	&& cp $$(ls target/debug/libforebay_jni.so target/debug/libforebay_jni.dylib 2>/dev/null) $(JVM_NATIVES)
jvm-test:
	$(JVM_DEBUG)
	$(MVN) --quiet --batch-mode --file java/pom.xml test $(JVM_TMPDIR) $(JVM)

jvm-jar:
	$(CARGO) build --locked --release --package forebay-jni
	@mkdir -p $(JVM_NATIVES) && cp $$(ls target/release/libforebay_jni.so target/release/libforebay_jni.dylib 2>/dev/null) $(JVM_NATIVES)
	$(MVN) --quiet --batch-mode --file java/pom.xml package -DskipTests -pl core $(JVM)
	@ls java/core/target/forebay-*.jar

# The state store of Spark: what it takes to run PySpark is in an environment of its own.
MINOR ?= 4.1
KILLS ?= 10
KEYS ?= 2400000
UPDATES ?= 100000
BATCHES ?= 40
MEMORY_MIB ?= 64
STORES ?= 1
SPARK_VENV := target/spark-venv-4.1.1
SPARK_JARS := java/core/target/forebay-0.1.0.jar java/spark/spark-4.1/target/forebay-spark-4.1-0.1.0.jar
SPARK_INPUT = $(or $(INPUT),docs/guide)

target/spark-venv-%:
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check pyspark==$* || { rm -rf $@; false; }

streams-jar: jvm-jar
	$(MVN) --quiet --batch-mode --file java/pom.xml package -DskipTests -pl core,kafka-streams
	@ls java/kafka-streams/target/forebay-*.jar

SPARK_MODULES := core,spark,spark/spark-4.0,spark/spark-4.1,spark/spark-4.2

spark-jar: jvm-jar
	$(MVN) --quiet --batch-mode --file java/pom.xml package -DskipTests -pl $(SPARK_MODULES)
	@ls java/spark/spark-*/target/forebay-*.jar

# Spark 4.3, of which there is the package for Python. A jar of our own names all of its jars; 4.3.x by another number here.
SPARK_LATEST ?= 4.3.0
SPARK_LATEST_VENV := target/spark-venv-$(SPARK_LATEST)
SPARK_LATEST_CLASSES := target/spark-$(SPARK_LATEST).jar
SPARK_LATEST_MVN = $(MVN) --quiet --batch-mode --file java/pom.xml package -pl core,spark,spark/spark-4.3 \
	-Dspark.jars='$(abspath $(SPARK_LATEST_CLASSES))'
SPARK_LATEST_JARS := java/core/target/forebay-0.1.0.jar java/spark/spark-4.3/target/forebay-spark-4.3-0.1.0.jar

$(SPARK_LATEST_CLASSES): $(SPARK_LATEST_VENV)
	@{ printf 'Class-Path: '; printf '\n  file://%s' $(abspath $<)/lib/python3*/site-packages/pyspark/jars/*.jar; echo; } \
	    | jar --create --file $@ --manifest /dev/stdin

# Its tests, and then a stream on it. Those of the engine's jar are run by jvm-test.
spark-4.3-test: $(SPARK_LATEST_CLASSES)
	$(JVM_DEBUG)
	$(SPARK_LATEST_MVN) -Dtest='dev.forebay.spark.*Test' -Dsurefire.failIfNoSpecifiedTests=false $(JVM_TMPDIR) $(JVM)
	@rm -rf target/spark-demo-4.3
	$(SPARK_LATEST_VENV)/bin/python java/spark/demo/counts.py $(SPARK_INPUT) target/spark-demo-4.3 --jars $(SPARK_LATEST_JARS)

spark-4.3-jar: jvm-jar $(SPARK_LATEST_CLASSES)
	$(SPARK_LATEST_MVN) -DskipTests
	@ls java/spark/spark-4.3/target/forebay-*.jar

demo-spark: $(SPARK_VENV) spark-jar
	@rm -rf target/spark-demo
	$(SPARK_VENV)/bin/python java/spark/demo/counts.py $(SPARK_INPUT) target/spark-demo --jars $(SPARK_JARS)

spark-kill: $(SPARK_VENV) spark-jar
	$(SPARK_VENV)/bin/python java/spark/demo/kill.py --kills $(KILLS) --jars $(SPARK_JARS)

spark-suites: spark-jar
	MVN='$(MVN)' $(PYTHON) java/spark/suites/run.py $(MINOR) $(SUITES)

spark-bench: spark-jar
	$(MVN) --quiet --batch-mode --file java/pom.xml test-compile -pl core,spark,spark/spark-4.1
	MVN='$(MVN)' $(PYTHON) java/spark/suites/bench.py $(KEYS) $(UPDATES) $(BATCHES) $(MEMORY_MIB) $(STORES)

# Rows and groups of a Parquet file.
ROWS ?= 20000000
GROUPS ?= 2500000
spark-groups-bench: spark-jar
	$(MVN) --quiet --batch-mode --file java/pom.xml test-compile -pl core,spark,spark/spark-4.1
	MVN='$(MVN)' $(PYTHON) java/spark/suites/groups.py $(ROWS) $(GROUPS)

# The tests' classes, and what they stand on.
JVM_STREAMS = target/jvm/streams
$(JVM_STREAMS)/classpath: java/pom.xml java/core/pom.xml java/kafka-streams/pom.xml
	@mkdir -p $(JVM_STREAMS)
	$(MVN) --quiet --batch-mode --file java/pom.xml --projects core,kafka-streams test-compile \
	    dependency:build-classpath -Dmdep.outputFile='$(abspath $@)' $(JVM)

RUN_STREAMS = $(JAVA) -Dforebay.library=target/release/libforebay_jni.so -Dlog4j2.configurationFile=log4j2-test.xml

demo-streams: $(JVM_STREAMS)/classpath
	$(CARGO) build --locked --release --package forebay-jni
	$(MVN) --quiet --batch-mode --file java/pom.xml --projects core,kafka-streams test-compile $(JVM)
	@$(RUN_STREAMS) -cp java/kafka-streams/target/test-classes:java/kafka-streams/target/classes:$$(cat $<) \
	    dev.forebay.kafka.WordCount $(JVM_STREAMS)/state $(if $(INPUT),'$(abspath $(INPUT))',README.md ARCHITECTURE.md docs)

# Each engine in a process of its own. Their heap is there from the beginning, so that what comes is theirs.
streams-figures: $(JVM_STREAMS)/classpath
	$(CARGO) build --locked --release --package forebay-jni
	$(MVN) --quiet --batch-mode --file java/pom.xml --projects core,kafka-streams test-compile $(JVM)
	@for what in rates memory; do for engine in forebay rocksdb; do \
	    $(RUN_STREAMS) -Xms1500m -Xmx1500m -XX:+AlwaysPreTouch \
	        -cp java/kafka-streams/target/test-classes:java/kafka-streams/target/classes:$$(cat $<) \
	        dev.forebay.kafka.Figures $$what $$engine $(JVM_STREAMS) $(RECORDS) || exit; \
	done; done

# A toolchain without rustfmt or clippy fetches it; where that fails too, the step is passed over aloud.
# The Python package is checked as for any Python, whichever there is.
format:
	@if $(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt; then \
	    echo '$(CARGO) fmt --all --check'; $(CARGO) fmt --all --check; \
	else echo 'skipped: rustfmt is not installed' >&2; fi

lint:
	@if $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy; then \
	    echo '$(CARGO) clippy --workspace --all-targets -- -D warnings'; \
	    PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) clippy --workspace --all-targets -- -D warnings; \
	else echo 'skipped: clippy is not installed' >&2; fi
