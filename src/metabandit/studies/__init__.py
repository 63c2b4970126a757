"""Published experiments, each a package that uses metabandit as any other study would."""
