package jpeg

var (
	Apply    = Orientation.apply
	Upsample = (*Plane).upsample
)

var StandardTables = &standardTables
