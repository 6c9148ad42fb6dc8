# A thin door to meson, for hands that type `make`. The build itself is meson.build.
#
#   make                      compile into build/make
#   make install PREFIX=...   install (default /usr/local); DESTDIR is honoured
#   make uninstall            remove what the last install put there
#   make dist                 sources, packages and a tarball of programs, in build/dist (root)
#   make check bench fuzz format lint

PREFIX ?= /usr/local
BUILD := build/make
SOURCES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
FUZZ_SECONDS ?= 60

.PHONY: all install uninstall dist check bench fuzz format lint clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

install: all
	meson configure $(BUILD) --prefix=$(PREFIX)
	meson install -C $(BUILD)

uninstall:
	@test -f $(BUILD)/meson-logs/install-log.txt || { \
	    echo 'nothing was installed from here; make install with the same PREFIX and DESTDIR, then again' >&2; exit 1; }
	ninja -C $(BUILD) uninstall

dist:
	tools/dist

check:
	./check

bench:
	bench/run

fuzz:
	tools/fuzz $(FUZZ_SECONDS)

format:
	clang-format -i $(SOURCES)

lint:
	tools/lint

clean:
	rm -rf build
