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

# `sudo make install` builds as the one whose checkout this is, who could change nothing in it afterwards.
OWNER := $(shell stat -c %u .)
ifeq ($(shell id -u),0)
ifneq ($(OWNER),0)
AS_OWNER := setpriv --reuid=$(OWNER) --regid=$(shell stat -c %g .) --clear-groups \
    env HOME="$(shell getent passwd $(OWNER) | cut -d : -f 6)"
endif
endif

all: $(BUILD)/build.ninja
	$(AS_OWNER) ninja -C $(BUILD)

$(BUILD)/build.ninja:
	$(AS_OWNER) meson setup $(BUILD) --prefix=$(PREFIX) -Dtests=false

install: all
	$(AS_OWNER) meson configure $(BUILD) --prefix=$(PREFIX)
	$(AS_OWNER) ninja -C $(BUILD)
	meson install -C $(BUILD) --no-rebuild

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
